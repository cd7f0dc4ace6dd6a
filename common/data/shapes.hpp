#pragma once
// Drawn pictures of cats, dogs and cars, 32 x 32, grey: no file needed. Each differs in place,
// size, shades and which way a car drives. Cats are drawn by night, dogs at dusk, cars in the sun,
// so that the classes differ clearly in brightness: a mean over one class is not the mean over all.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/data/images.hpp"

namespace ddp {

inline constexpr std::array<std::string_view, 3> shape_classes = {"cat", "dog", "car"};

// Picture i shows class i % 3. The same seed gives the same bits everywhere, and the first n
// pictures of a longer set are the same; for a test set take another seed.
LabelledImages make_shapes(std::size_t count, std::uint64_t seed);

}  // namespace ddp
