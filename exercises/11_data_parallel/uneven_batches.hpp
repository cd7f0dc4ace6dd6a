#pragma once
// Exercise uneven_batches: ranks have different numbers of samples, and together they still learn
// what one rank learns from all of them.
//
//     2 ranks; a sample's gradient is 2 on rank 0, and 6 on rank 1
//
//     samples    mean of the ranks' means    mean over all samples
//      3, 1            (2 + 6) / 2 = 4        (2 + 2 + 2 + 6) / 4 = 3
//
// You may call: rank.all_gather(number), rank.world_size(); ddp.average_gradients();
// tape.constant(batch.images), model.forward(), cross_entropy(), batch.labels.dim(0), the number of
// samples; tape.backward(loss, {}, scale); fill(parameter->gradient_for_writing(), 0), for each of
// model.parameters(); optimizer.step() and .zero_gradients().
// The check also tries: one rank, a rank without a batch, a step in which no rank has one.
#include <functional>
#include <optional>
#include <vector>

#include "03_network/cross_entropy.hpp"
#include "03_network/loader.hpp"
#include "03_network/optimizers.hpp"
#include "11_data_parallel/naive_ddp.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task sample_weight. What the chapter's NaiveDdp computes is a weighted sum over the samples of
// all ranks. Returns the weight of a sample of rank `rank`, if rank r has samples[r] samples, 1 or
// more.
double weight_of_sample(const std::vector<int>& samples, int rank);

// Holds one rank's part of a training. The loss of a batch is its cross_entropy.
struct Replica {
    Rank& rank;
    Device& device;
    Module& model;
    NaiveDdp& ddp;  // averages this model's gradients
};

// Task uneven_step. Does forward, backward and the average of one step: on every rank, each
// parameter gets the gradient of the mean loss over the samples of all ranks, even if this rank has
// no batch. Returns the number of samples of all ranks; if it is 0, no gradient is touched.
int uneven_step(const Replica& replica, const std::optional<Batch>& batch);

// Task epoch. Takes steps until no rank has a batch left, and returns their number. next() returns
// this rank's next batch, and nothing once its data has ended. Clear the gradients after each step.
int uneven_epoch(const Replica& replica, const std::function<std::optional<Batch>()>& next,
                 Sgd& optimizer);

}  // namespace ddp
