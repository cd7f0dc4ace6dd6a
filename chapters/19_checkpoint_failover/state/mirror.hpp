#pragma once
// Mirrors pictures at random, so that the network does not learn in which direction a shoe points.
#include <cstdint>

#include "01_sgd/tensor.hpp"
#include "common/data/random.hpp"

namespace ddp {

// The largest batch: one bit per picture fits into a kernel's arguments.
inline constexpr int max_mirrored = 1024;

// The pictures of a batch that are mirrored: one bit for each.
struct Mirrored {
    std::uint64_t bits[max_mirrored / 64] = {};

    void set(int picture) { bits[picture / 64] |= std::uint64_t{1} << (picture % 64); }
};

// Tosses a coin for each of the world_size * batch samples of a step, in the order of the epoch,
// and returns those of this rank, which has every world_size-th sample. All ranks toss all coins:
// so their generators stay in step, and a picture's coin does not depend on the number of ranks.
Mirrored toss(Random& random, int batch, int rank, int world_size);

// Exchanges left and right, in place, in these pictures of `images` [batch, channels, height,
// width]. Enqueues only.
void mirror(Tensor images, const Mirrored& which);

}  // namespace ddp
