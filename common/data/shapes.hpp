#pragma once
// Drawn pictures of cats, dogs and cars, 32 x 32 pixels, grey; they need no file. The pictures
// differ in place, size and shades, and cars drive in either direction. Cats are drawn at night,
// dogs at dusk and cars in the sun, so the classes clearly differ in brightness, and the mean over
// one class is not the mean over all.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/data/images.hpp"

namespace ddp {

inline constexpr std::array<std::string_view, 3> shape_classes = {"cat", "dog", "car"};

// Makes `count` pictures. Picture i shows class i % 3. The same seed gives the same bits
// everywhere, and the first n pictures of a longer set are the same. Use another seed for a test
// set.
LabelledImages make_shapes(std::size_t count, std::uint64_t seed);

}  // namespace ddp
