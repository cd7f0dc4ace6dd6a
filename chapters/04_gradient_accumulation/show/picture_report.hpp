#pragma once
// The chapter's tables about pictures: one training, in micro-batches of several sizes.
#include <cstdint>
#include <vector>

#include "common/data/images.hpp"
#include "common/report/options.hpp"

namespace ddp {

constexpr int picture_hidden = 128;  // hidden numbers of the network that is trained

struct PictureOptions {
    int batch = 512;
    std::vector<int> micro_batch;  // sizes, in pictures
    int steps = 20;
};

// Adds --batch and --micro-batch.
void add_picture_sizes(Options& command_line, PictureOptions& options);

// Returns the options with the sizes filled in if the user gave none: the batch, a half of it, a
// quarter, an eighth, and one picture at a time. Throws OptionError if the data set has fewer
// pictures than a batch, or a batch has fewer than a micro-batch.
PictureOptions checked(PictureOptions options, const LabelledImages& images);

// Trains the same network from the same initial weights with each size in turn, step by step.
// Prints the memory of each, as predicted and as measured, its time, and the difference between its
// first gradient and that of the first size. Throws std::runtime_error if roundings cannot explain
// the difference, or if the memory is not as predicted. `options` must come from checked().
void show_pictures(const LabelledImages& images, const PictureOptions& options, std::uint64_t seed);

}  // namespace ddp
