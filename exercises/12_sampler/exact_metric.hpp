#pragma once
// Exercise exact_metric: a validation over padded samples whose result is still exact.
//
//     5 samples on 2 ranks; (0) is padding
//
//     rank 0    0   2   4      weights   1 1 1
//     rank 1    1   3  (0)     weights   1 1 0
//
// You may call: DistributedSampler(samples, rank, world_size, {.shuffle = false}), with
// .samples_per_rank(); sum_over_ranks(numbers), which replaces each number by its sum.
// The check also tries: one rank, more ranks than samples, ranks without answers, classes that do
// not occur.
#include <vector>

#include "12_sampler/sampler.hpp"
#include "exercises/not_implemented.hpp"
#include "exercises/sum_over_ranks.hpp"

namespace ddp {

// Task weights. Returns a weight for each index of the rank's DistributedSampler: 0 if the index is
// padding, and 1 otherwise. So every sample counts once over all ranks.
std::vector<double> weights_of_padded(int samples, int rank, int world_size);

// A rank's answers, one for each of its samples.
struct Answers {
    std::vector<int> predicted, label;  // classes 0, ..., classes - 1
    std::vector<double> weights;
};

// Task balanced_accuracy. Returns the mean recall over the classes that occur, the same on all
// ranks; 0 if no sample counts. A class's recall is its correct answers / its answers, both
// weighted and over all ranks. Every rank calls sum_over_ranks once, with at most 2 * classes
// numbers.
double balanced_accuracy(const Answers& mine, int classes, const SumOverRanks& sum_over_ranks);

// Task worst_padding. Returns how far the accuracy can be from the exact one, at worst, if padded
// samples count like all others. There are at least as many samples as ranks.
double worst_padding(int samples, int world_size);

}  // namespace ddp
