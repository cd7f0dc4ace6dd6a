#pragma once
// Whole epochs with the right sampler and with wrong ones: which samples are seen, what the network
// learns, and which accuracy is measured.
#include <memory>
#include <string>
#include <vector>

#include "03_network/layers/sequential.hpp"
#include "11_data_parallel/naive_ddp.hpp"
#include "12_sampler/sampler.hpp"
#include "common/data/fashion_mnist.hpp"

namespace ddp {

// A way to divide the samples of an epoch among ranks, correct or not.
enum class Division {
    sampler,       // DistributedSampler: each rank takes its entries of one order
    forgotten,     // no sampler: each rank takes all samples, in one order
    own_shuffles,  // each rank takes its entries of an order that it shuffled with its own seed
};
// Returns the name in the tables.
std::string text_of(Division division);
// Returns the samples of rank `rank` in an epoch.
std::vector<int> divided(Division division, int samples, int rank, int world_size,
                         std::uint64_t seed);

// The samples that all ranks together see in an epoch.
struct Coverage {
    int steps = 0;   // of the last rank
    int seen = 0;    // different samples
    int twice = 0;   // of these, seen more than once
    int missed = 0;  // never seen
};
// Counts how often each sample is seen, with batches of `batch` samples per rank.
Coverage coverage_of(Division division, int samples, int batch, int world_size, std::uint64_t seed);

// One epoch of data parallel training.
struct Epoch {
    int steps = 0;  // of this rank
    double seconds = 0;
};

// The gradients that a rank steps with: the mean of all ranks', or its own.
enum class Gradients { averaged, own };

// Data parallel training of the MLP, as this rank takes part in it. All ranks make the same calls.
class EpochTraining {
  public:
    // `rank`, `device` and `data` must outlive this object. `batch` is the samples per step and
    // rank.
    EpochTraining(Rank& rank, Device& device, const FashionMnist& data, int batch,
                  std::uint64_t seed);

    // Trains on these samples of this rank. All ranks must have the same number of batches.
    Epoch learn(const std::vector<int>& indices, Gradients gradients = Gradients::averaged);
    // Evaluates the model on these test pictures of this rank, and returns the totals over all
    // ranks. Ranks may have different numbers of pictures.
    Metrics::Totals measure(const std::vector<int>& indices);

    const Sequential& model() const { return *model_; }

  private:
    Rank& rank_;
    const FashionMnist& data_;
    const int batch_;
    Device& device_;
    std::unique_ptr<Sequential> model_;
    std::unique_ptr<Communicator> communicator_;
    NaiveDdp ddp_;
};

// Returns the largest difference between two parameters of the same place on this rank.
double largest_difference(const EpochTraining& a, const EpochTraining& b);

// Trains for some steps without a sampler, on all ranks together and then on each rank alone; rank
// 0 prints how far the two networks are apart. All ranks call it together.
void show_no_sampler(Rank& rank, Device& device, const FashionMnist& data, int batch,
                     std::uint64_t seed);

// Calls an all-reduce for each of this rank's `batches` batches, as data parallel training does. If
// another rank has a different number, the run fails after a second.
void train_unevenly(Rank& rank, int batches);

}  // namespace ddp
