#pragma once
// The contract of the exercise exact_metric: a validation that goes through padded samples, as
// PyTorch's sampler deals them out, and is exact all the same.
#include <vector>

#include "exercises/not_implemented.hpp"
#include "exercises/sum_over_ranks.hpp"

namespace ddp {

// Task weights. For each index that DistributedSampler(samples, rank, world_size, {.shuffle =
// false}) gives to this rank, whether it counts: 1, or 0 if it is there a second time to make the
// ranks even. Of all ranks' indices every sample counts once.
std::vector<double> weights_of_padded(int samples, int rank, int world_size);

// A rank's answers, one for each of its samples.
struct Answers {
    std::vector<int> predicted, label;  // classes 0, ..., classes - 1
    std::vector<double> weights;
};

// Task balanced_accuracy. For each class the part of its samples that were named rightly, over all
// ranks; and of these the mean over the classes that occur. (So a rare class counts as much as a
// frequent one.) The same on all ranks; 0 if no sample counts. Every rank calls sum_over_ranks
// once, with at most 2 * classes numbers. A rank may have no answer at all.
double balanced_accuracy(const Answers& mine, int classes, const SumOverRanks& sum_over_ranks);

// Task worst_padding. If padded samples do count: how far can the accuracy (right answers by all
// answers) be from the exact one, at worst? `world_size` is at most `samples`.
double worst_padding(int samples, int world_size);

}  // namespace ddp
