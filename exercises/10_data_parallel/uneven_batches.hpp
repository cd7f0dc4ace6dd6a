#pragma once
// The contract of the exercise uneven_batches: data parallel training whose ranks have different
// numbers of samples, and at the end of an epoch none, and that still learns what one rank learns
// from the samples of all.
#include <functional>
#include <optional>
#include <vector>

#include "03_network/loader.hpp"
#include "03_network/optimizers.hpp"
#include "10_data_parallel/naive_ddp.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task sample_weight. The gradient that the chapter's NaiveDdp computes is a sum over the samples
// of all ranks, in which each has a weight. Which one, if rank r has samples[r] of them in this
// step (1 or more), for those of `rank`?
double weight_of_sample(const std::vector<int>& samples, int rank);

// One rank's part in the training. The loss of a batch is chapter 03's cross_entropy, a mean over
// its samples.
struct Replica {
    Rank& rank;
    Device& device;
    Module& model;
    NaiveDdp& ddp;  // of this model
};

// Task uneven_step. Forward, backward and average of one step. Every parameter's gradient, which is
// absent before, becomes that of the mean loss over the samples of all ranks, on every rank; also
// on one that has no batch. (Frozen parameters have none.) All ranks call it together. Returns how
// many samples all ranks had; if it is 0, no gradient has been touched.
int uneven_step(const Replica& replica, const std::optional<Batch>& batch);

// Task epoch. Steps until no rank has a batch any more: next() gives this rank's next one, and
// nothing from the end of its data on. Before a step there are no gradients, and after it they are
// cleared. All ranks take the same number of steps of the optimizer, which is returned.
int uneven_epoch(const Replica& replica, const std::function<std::optional<Batch>()>& next,
                 Sgd& optimizer);

}  // namespace ddp
