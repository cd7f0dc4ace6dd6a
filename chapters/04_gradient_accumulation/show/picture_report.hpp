#pragma once
// The chapter's tables about pictures: one training, in micro-batches of several sizes.
#include <cstdint>
#include <vector>

#include "common/data/images.hpp"

namespace ddp {

struct PictureOptions {
    int batch = 512;
    std::vector<int> micro_batch;  // sizes, in pictures
    int steps = 20;
};

// Returns the options as the user gave them; where no size was given, the batch, a half of it, a
// quarter, an eighth, and one picture at a time. Throws OptionError where there are not enough
// pictures for a batch, or for a micro-batch.
PictureOptions checked(PictureOptions options, const LabelledImages& images);

// Trains the same network from the same beginning with each size in turn, step by step, and prints
// what memory each takes, as predicted and as measured, how long, and how far the first gradient is
// from that of the first size. Throws std::runtime_error if it is farther than roundings explain,
// or if memory is not what was predicted. `options` are checked.
void show_pictures(const LabelledImages& images, const PictureOptions& options, std::uint64_t seed);

}  // namespace ddp
