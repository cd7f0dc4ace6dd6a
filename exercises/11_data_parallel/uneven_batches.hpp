#pragma once
// The contract of the exercise uneven_batches: data parallel training in which ranks have different
// numbers of samples, and some have none at the end of an epoch. It still learns what one rank
// learns from all samples.
#include <functional>
#include <optional>
#include <vector>

#include "03_network/loader.hpp"
#include "03_network/optimizers.hpp"
#include "11_data_parallel/naive_ddp.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task sample_weight. The gradient that the chapter's NaiveDdp computes is a weighted sum over the
// samples of all ranks. Returns the weight of a sample of rank `rank`, if rank r has samples[r]
// samples in this step (1 or more).
double weight_of_sample(const std::vector<int>& samples, int rank);

// The objects that one rank trains with. The loss of a batch is 03_network's cross_entropy, the
// mean over its samples.
struct Replica {
    Rank& rank;
    Device& device;
    Module& model;
    NaiveDdp& ddp;  // averages this model's gradients
};

// Task uneven_step. Does forward, backward and the average of one step. Leaves in every parameter,
// on every rank, the gradient of the mean loss over the samples of all ranks, even if this rank has
// no batch. Before the call no gradient is present, and frozen parameters never have one. Returns
// the number of samples of all ranks; if it is 0, no gradient is touched. All ranks call it
// together.
int uneven_step(const Replica& replica, const std::optional<Batch>& batch);

// Task epoch. Takes steps until no rank has a batch left, and returns their number, the same on all
// ranks. next() returns this rank's next batch, and nothing once its data has ended. There are no
// gradients before the first step; clear them after each step.
int uneven_epoch(const Replica& replica, const std::function<std::optional<Batch>()>& next,
                 Sgd& optimizer);

}  // namespace ddp
