#pragma once
// The contract of the exercise exact_metric: a validation over padded samples, as PyTorch's sampler
// deals them out, whose result is still exact.
#include <vector>

#include "exercises/not_implemented.hpp"
#include "exercises/sum_over_ranks.hpp"

namespace ddp {

// Task weights. Returns a weight for each index of DistributedSampler(samples, rank, world_size,
// {.shuffle = false}): 0 if the index is padding, and 1 otherwise. So every sample counts once over
// all ranks.
std::vector<double> weights_of_padded(int samples, int rank, int world_size);

// A rank's answers, one for each of its samples.
struct Answers {
    std::vector<int> predicted, label;  // classes 0, ..., classes - 1
    std::vector<double> weights;        // 0 or more
};

// Task balanced_accuracy. Returns the mean recall over the classes that occur, the same on all
// ranks; 0 if no sample counts. A class's recall is its correct answers / its answers, both
// weighted and over all ranks. (So a rare class counts as much as a frequent one.) Every rank calls
// sum_over_ranks once, with at most 2 * classes numbers. A rank may have no answers.
double balanced_accuracy(const Answers& mine, int classes, const SumOverRanks& sum_over_ranks);

// Task worst_padding. Returns how far the accuracy can be from the exact one, at worst, if padded
// samples count like all others. `world_size` is at most `samples`.
double worst_padding(int samples, int world_size);

}  // namespace ddp
