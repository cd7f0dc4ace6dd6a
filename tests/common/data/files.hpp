#pragma once
// Files for the readers to read, good and bad.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "common/data/file.hpp"

namespace ddp::test {

using Bytes = std::vector<std::uint8_t>;

// An IDX file of bytes: header and elements.
Bytes idx_file(const std::vector<std::uint32_t>& dims, const Bytes& elements);
// 0, 1, 2 ... modulo 251: every element encodes its place, and rows of powers of two do not repeat.
Bytes counting(std::size_t count);
Bytes gzipped(const Bytes& bytes);
Bytes joined(Bytes a, const Bytes& b);
Bytes shortened(Bytes bytes, std::size_t to);
Bytes with_bit_flipped(Bytes bytes, std::size_t bit);
Bytes with_byte(Bytes bytes, std::size_t at, std::uint8_t value);

// One to four random edits: a bit flipped, a byte set (near the front more often than elsewhere),
// the end cut off, a piece repeated, bytes appended.
Bytes mutated(Bytes bytes, std::mt19937& random);

// The text of the DataError that `act` throws; "" if it throws none. Other exceptions pass.
std::string data_error(const std::function<void()>& act);

// A folder of its own under the system's folder for temporary files; gone with the object.
class TemporaryFolder {
  public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    const std::filesystem::path& path() const { return path_; }
    std::filesystem::path write(const std::string& name, std::span<const std::uint8_t> bytes) const;

  private:
    std::filesystem::path path_;
};

}  // namespace ddp::test
