#pragma once
// The file format safetensors, in which tensors are handed around: nothing in it is code, and every
// tensor can be found without reading the others.
//
//     8 bytes   the length N of the header, little-endian
//     N bytes   the header, JSON, with spaces behind it:
//               {"__metadata__": {"step": "120"},
//                "linear1.weight": {"dtype": "F32", "shape": [256, 784], "data_offsets": [0,
//                802816]}}
//     the rest  the tensors' bytes, end to end; data_offsets count from here
//
// (https://github.com/huggingface/safetensors, README.md, "Format".)
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace ddp {

struct SafetensorsHeader {
    struct Entry {
        std::string name;
        std::vector<std::size_t> shape;
        std::string type = "F32";
        std::size_t begin = 0, end = 0;  // of its bytes in the data

        bool operator==(const Entry&) const = default;
    };
    std::vector<Entry> tensors;  // in the order of their bytes
    std::map<std::string, std::string> metadata;

    // Behind those that are there: floats.
    void add(std::string name, std::vector<std::size_t> shape);
    std::size_t data_bytes() const { return tensors.empty() ? 0 : tensors.back().end; }

    bool operator==(const SafetensorsHeader&) const = default;
};

// What stands before the data, length and all; a multiple of 8 bytes, so that numbers are aligned.
std::string encode_safetensors(const SafetensorsHeader& header);

// A file in memory.
struct Safetensors {
    SafetensorsHeader header;
    std::size_t data_begin = 0;  // in `bytes`
    std::vector<std::uint8_t> bytes;

    std::span<const std::uint8_t> data() const { return std::span(bytes).subspan(data_begin); }
    // The tensor of that name, or of that name with "module." before it: so PyTorch's
    // DistributedDataParallel calls what it wraps. nullptr if there is neither.
    const SafetensorsHeader::Entry* find(const std::string& name) const;
    // The values of a tensor of type F32.
    std::vector<float> values(const SafetensorsHeader::Entry& entry) const;
};

// Throws DataError, in one sentence that begins with `name`, for whatever is not as the format has
// it: lengths that do not fit, a name twice, a gap between tensors, bytes that belong to none.
Safetensors decode_safetensors(std::vector<std::uint8_t> bytes, const std::string& name);

}  // namespace ddp
