#pragma once
// safetensors, a file format for tensors: no part of it is code, and a reader finds each tensor
// without reading the others.
//
//     8 bytes   the length N of the header, little-endian
//     N bytes   the header, JSON, padded with spaces:
//               {"__metadata__": {"step": "120"},
//                "linear1.weight": {"dtype": "F32", "shape": [256, 784],
//                                   "data_offsets": [0, 802816]}}
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

    // Adds a tensor of floats after the others.
    void add(std::string name, std::vector<std::size_t> shape);
    std::size_t data_bytes() const { return tensors.empty() ? 0 : tensors.back().end; }

    bool operator==(const SafetensorsHeader&) const = default;
};

// Returns the bytes before the data: the length and the header, padded to a multiple of 8 bytes so
// that the tensors are aligned.
std::string encode_safetensors(const SafetensorsHeader& header);

// A decoded file: its header, and all of its bytes.
struct Safetensors {
    SafetensorsHeader header;
    std::size_t data_begin = 0;  // in `bytes`
    std::vector<std::uint8_t> bytes;

    std::span<const std::uint8_t> data() const { return std::span(bytes).subspan(data_begin); }
    // Returns the tensor with this name, or with "module." before it, which PyTorch's
    // DistributedDataParallel adds to the names of the model that it wraps; nullptr if there is
    // neither.
    const SafetensorsHeader::Entry* find(const std::string& name) const;
    // Returns the values of a tensor of type F32.
    std::vector<float> values(const SafetensorsHeader::Entry& entry) const;
};

// Decodes a whole file. Throws DataError, with one sentence that begins with `name`, if the bytes
// break a rule of the format: lengths that do not fit, a name that comes twice, a gap between
// tensors, bytes that belong to none.
Safetensors decode_safetensors(std::vector<std::uint8_t> bytes, const std::string& name);

}  // namespace ddp
