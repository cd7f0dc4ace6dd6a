#include "common/data/images.hpp"

#include <stdexcept>
#include <string>

namespace ddp {

void normalise(std::span<const std::uint8_t> pixels, Normalisation by, std::span<float> out) {
    if (pixels.size() != out.size())
        throw std::invalid_argument("normalise got " + std::to_string(pixels.size()) +
                                    " pixels and room for " + std::to_string(out.size()) +
                                    " floats: give it room for one float per pixel.");
    for (std::size_t i = 0; i < pixels.size(); i++)
        out[i] = (static_cast<float>(pixels[i]) / 255.0f - by.mean) / by.std;
}

}  // namespace ddp
