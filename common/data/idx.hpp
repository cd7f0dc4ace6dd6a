#pragma once
// IDX, the file format of MNIST and Fashion-MNIST: a small header, followed by an array of bytes.
//
//     00 00 08 D      D dimensions (08: the elements are unsigned bytes, the only type read here)
//     D times 4 bytes the extent of each dimension, big-endian
//     the elements    row-major, one byte each, and nothing after them
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace ddp {

struct Idx {
    std::vector<std::size_t> dims;    // for example {60000, 28, 28}
    std::vector<std::uint8_t> bytes;  // row-major; as many as the product of dims
};

// Reads an IDX file, gzipped or not (its first two bytes show which). Throws DataError if anything
// is missing, damaged or left over.
Idx read_idx(const std::filesystem::path& path);

// Does the same with a file that is already in memory. Error messages call it `name`. Allocates no
// more memory than the header announces, and no more than `file` can possibly hold.
Idx parse_idx(std::span<const std::uint8_t> file, const std::string& name);

}  // namespace ddp
