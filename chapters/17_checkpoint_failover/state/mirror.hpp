#pragma once
// Pictures that are mirrored at random, so that a network does not learn which way a shoe points.
#include <cstdint>

#include "01_sgd/tensor.hpp"
#include "common/data/random.hpp"

namespace ddp {

// So many pictures can be told apart in what a kernel is given.
inline constexpr int most_mirrored = 1024;

// Which of up to most_mirrored pictures.
struct Mirrored {
    std::uint64_t bits[most_mirrored / 64] = {};

    void set(int picture) { bits[picture / 64] |= std::uint64_t{1} << (picture % 64); }
};

// For each of the world_size * batch samples of a step, in the order of the epoch, a coin; returns
// what has fallen to this rank, which has every world_size-th of them. All ranks toss all coins:
// their generators stay the same, and a picture's coin does not depend on how many ranks there are.
Mirrored toss(Random& random, int batch, int rank, int world_size);

// Turns left and right around in those of `images` [batch, channels, height, width]. Enqueues only.
void mirror(Tensor images, const Mirrored& which);

}  // namespace ddp
