#pragma once
// Pictures with labels, as they lie in memory: one byte per pixel, 0 black, 255 white. Or rows of a
// table, which are samples of one line.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ddp {

struct LabelledImages {
    std::size_t channels = 1;
    std::size_t height = 0;
    std::size_t width = 0;
    std::vector<std::uint8_t> pixels;  // [count, channels, height, width], row-major
    std::vector<std::uint8_t> labels;  // [count], the index of each picture's class
    int classes = 10;                  // labels are 0 .. classes-1
    bool are_numbers = false;          // `pixels` are the bytes of floats: rows of a table

    std::size_t count() const { return labels.size(); }
    std::size_t image_size() const { return channels * height * width; }
    std::size_t image_bytes() const { return image_size() * (are_numbers ? sizeof(float) : 1); }
    std::span<const std::uint8_t> image(std::size_t i) const {
        return std::span(pixels).subspan(i * image_bytes(), image_bytes());
    }
};

// The normalisation of pixels: x becomes (x / 255 - mean) / std. The default only maps 0..255 to
// 0..1.
struct Normalisation {
    float mean = 0.0f;
    float std = 1.0f;
};

// Writes out[i] = (pixels[i] / 255 - mean) / std. These are the operations of torchvision's
// ToTensor and Normalize in the same order, so the bits are the same. Throws std::invalid_argument
// if the sizes differ.
void normalise(std::span<const std::uint8_t> pixels, Normalisation by, std::span<float> out);

}  // namespace ddp
