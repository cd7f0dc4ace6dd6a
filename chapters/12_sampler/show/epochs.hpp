#pragma once
// Epochs of training with the samples of a division, correct or not, and what comes of them.
#include <memory>
#include <vector>

#include "03_network/layers/sequential.hpp"
#include "03_network/metrics.hpp"
#include "11_data_parallel/replica.hpp"
#include "common/data/fashion_mnist.hpp"

namespace ddp {

// An epoch of the MLP, as this rank took part in it.
struct Epoch {
    std::unique_ptr<Sequential> model;  // as it is at the end
    int steps = 0;                      // of this rank
    double seconds = 0;
};

// The gradients that a rank steps with: the mean of all ranks', or its own.
enum class Gradients { averaged, own };

// Trains on these samples of this rank, with batches of `batch`. All ranks call it together, with
// the same number of batches.
Epoch learn(Rank& rank, Device& device, const LabelledImages& images,
            const std::vector<int>& indices, int batch, std::uint64_t seed,
            Gradients gradients = Gradients::averaged);

// Evaluates the model on every picture once, whatever the number of ranks, and returns the totals
// of all ranks, which call it together.
Metrics::Totals measure(Rank& rank, Device& device, Sequential& model, const LabelledImages& images,
                        int pictures, int batch);

// Trains for some steps without a sampler, on all ranks together and then on each rank alone; rank
// 0 prints how far the two networks are apart. All ranks call it together.
void show_no_sampler(Rank& rank, Device& device, const LabelledImages& images, int batch,
                     std::uint64_t seed);

}  // namespace ddp
