#pragma once
// Whole epochs with the right sampler and with the wrong ones: who sees what, what the network
// learns, and what its accuracy then seems to be.
#include <memory>
#include <string>
#include <vector>

#include "03_network/layers/sequential.hpp"
#include "10_data_parallel/naive_ddp.hpp"
#include "11_sampler/sampler.hpp"
#include "common/data/fashion_mnist.hpp"

namespace ddp {

// How the samples of an epoch may be divided among ranks, rightly and wrongly.
enum class Division {
    sampler,       // each rank its part
    forgotten,     // each rank all of them, in one order
    own_shuffles,  // each rank the part with its number, but of an order of its own
};
std::string text_of(Division division);
std::vector<int> divided(Division division, int samples, int rank, int world_size,
                         std::uint64_t seed);

// What the ranks see of an epoch together.
struct Coverage {
    int steps = 0;   // of one rank
    int seen = 0;    // different samples
    int twice = 0;   // of these, seen more than once
    int missed = 0;  // never seen
};
Coverage coverage_of(Division division, int samples, int batch, int world_size, std::uint64_t seed);

// One epoch of data parallel training.
struct Epoch {
    int steps = 0;  // of this rank
    double seconds = 0;
};

// The MLP on this rank, which learns and is measured together with those of the other ranks. All
// ranks make the same calls.
class Student {
  public:
    // `data` must live longer.
    Student(Rank& rank, const FashionMnist& data, int batch, std::uint64_t seed);

    Epoch learn(const std::vector<int>& indices);
    // Over all ranks, on this rank's part of the test pictures.
    Metrics::Totals measure(const std::vector<int>& indices);

  private:
    Rank& rank_;
    const FashionMnist& data_;
    const int batch_;
    Device& device_;
    std::unique_ptr<Sequential> model_;
    std::unique_ptr<Communicator> communicator_;
    NaiveDdp ddp_;
};

// Data parallel training in which this rank has `batches` batches, and others may have more or
// fewer. Where they have, the run fails after a second.
void train_unevenly(Rank& rank, int batches);

}  // namespace ddp
