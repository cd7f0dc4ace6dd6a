#pragma once
// Files into memory, and the one exception of this folder.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ddp {

// Data that is missing, damaged or not what it should be. The text is one sentence: the file, what
// was found, what was expected, what to do.
class DataError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Throws DataError with the text "'name' what".
[[noreturn]] void refuse(const std::string& name, const std::string& what);

// No file of the book comes near it; it keeps a wrong path or a wrong header from filling the
// memory.
inline constexpr std::size_t max_data_bytes = std::size_t{1} << 31;

// The whole file. Throws DataError if it is missing, not a regular file, unreadable or larger than
// max_data_bytes.
std::vector<std::uint8_t> read_file(const std::filesystem::path& path);

// CRC-32, the checksum of gzip and PNG. `bytes` must not exceed max_data_bytes.
std::uint32_t checksum(std::span<const std::uint8_t> bytes);

}  // namespace ddp
