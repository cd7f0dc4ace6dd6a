#pragma once
// Reads files into memory; and the exception that all of common/data throws.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ddp {

// Data that is missing, damaged or of another kind than expected. The text is one sentence: the
// file, what was found, what was expected, what to do.
class DataError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Returns `text` with a ? for each character that a terminal would obey and not print, and its
// first 600 bytes if it is longer: the words of a damaged file go into an error message.
std::string printable(std::string text);

// Throws DataError with the text "'name' what", printable.
[[noreturn]] void refuse(const std::string& name, const std::string& what);

// The most bytes that are read into memory. No file of the book comes near it; the limit keeps a
// wrong path or a damaged header from filling the memory.
inline constexpr std::size_t max_data_bytes = std::size_t{1} << 31;

// Returns the whole file. Throws DataError if it is missing, not a regular file, unreadable or
// larger than max_data_bytes.
std::vector<std::uint8_t> read_file(const std::filesystem::path& path);

// Returns the CRC-32 of `bytes`, the checksum of gzip and PNG, or goes on with the one of the bytes
// before them. There must be at most max_data_bytes.
std::uint32_t checksum(std::span<const std::uint8_t> bytes, std::uint32_t before = 0);

}  // namespace ddp
