#pragma once
// The bill: the bytes of a training step on one rank, by kind, before anything is allocated.
//
//     kind                       stage 0    stage 1    stage 2    stage 3      elements of
//     parameters that it keeps   P          P          P          P / N        4 bytes
//     gathered copies            -          -          -          2 units, and to round them
//     gradients that it keeps    P          P          P / N      P / N
//     buckets in flight          -          -          2 units    2 units
//     Adam's two moments         2 P        2 P / N    2 P / N    2 P / N
//     activations                the same at every stage, and as many as the batch has samples
//     communicator               what it takes for itself; at stage 0 also P, for the copy of rank
//                                0's model at the beginning
//
// P is the sum of what each unit takes with the gaps behind its parameters; P / N is the sum of
// the chunks, each of which is rounded up. "2 units" are the two largest blocks, and a root.
#include <vector>

#include "22_sharded/sharded.hpp"

namespace ddp {

struct Bill {
    std::size_t parameters = 0, gathered = 0, gradients = 0, buckets = 0, moments = 0;
    std::size_t activations = 0, communicator = 0;

    std::size_t total() const {
        return parameters + gathered + gradients + buckets + moments + activations + communicator;
    }
};

// Returns the arena size that a communicator needs for this model: that of ShardedDataParallel, or
// at stage 0 that of DistributedDataParallel.
std::size_t arena_bytes_of(const Blocks& blocks, int stage, int ranks,
                           const ShardOptions& options = {});

// Returns the bill of a stage, 0 to 3, without activations, for ranks of one node. `moments_each`:
// the moments that the optimizer keeps for each parameter, 2 for Adam and 1 for SGD with momentum.
Bill bill_of(const Blocks& blocks, int stage, int ranks, std::size_t moments_each,
             const ShardOptions& options = {});

// Returns what a step on `batch` samples keeps and needs for a moment in an MLP of these widths:
// forward leaves the outputs of each linear layer and of each ReLU, and the gradient of the
// scores; backward has the gradient of a layer's output and that of its input at the same time.
std::size_t mlp_activations(const std::vector<int>& widths, int batch);

}  // namespace ddp
