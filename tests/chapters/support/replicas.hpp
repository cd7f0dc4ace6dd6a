#pragma once
// Small networks that several ranks train together, and the check that they learn what one rank
// learns from the samples of all.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "03_network/layer.hpp"
#include "03_network/loader.hpp"
#include "05_ranks/world.hpp"
#include "09_all_reduce/communicator.hpp"
#include "common/data/random.hpp"

namespace ddp::test {

// What a rank of these tests needs of its device.
inline constexpr std::size_t test_memory = 4 << 20;

// ---- Networks: for pictures of 8 x 8 in ten classes, with sizes that no number of ranks divides.

using MakeModel = std::function<std::unique_ptr<Module>(Device& device, Random& random)>;

struct Network {
    std::string name;
    MakeModel make;
};

// A perceptron; convolutions; the same with a BatchNorm that is in evaluation, as when a network is
// tuned; and one with a layer that is used twice and one that is frozen.
std::vector<Network> networks();
std::unique_ptr<Module> make_small_mlp(Device& device, Random& random);

// ---- Data: that of the golden curves.

// Pictures [samples, 1, 8, 8] and their labels.
Batch batch_of(Device& device, const std::vector<int>& samples);

// ---- Training

// How the ranks train together.
class Strategy {
  public:
    virtual ~Strategy() = default;
    // The loss of the batch. Leaves the mean of all ranks' gradients in the model's parameters.
    virtual double learn(const Batch& batch, Tape& tape) = 0;
};
using MakeStrategy = std::function<std::unique_ptr<Strategy>(Communicator& communicator,
                                                             Device& device, Module& model)>;

// Every rank begins with another seed, and takes five steps of SGD with momentum on its part of
// twelve samples each. Empty if after every step all ranks have the same bits, and each parameter
// is what one rank has that begins like rank 0 and learns from all twelve: to `tolerance` of the
// parameter's largest number, and to the bit in a world of one rank. Otherwise the first
// difference, or what the run has failed of.
std::string difference_from_one_rank(World& world, const MakeModel& make_model,
                                     const MakeStrategy& make_strategy, double tolerance = 1e-6);

// Fifty steps of the golden MLP with each step's samples divided among the ranks. Empty if the mean
// of the ranks' losses is PyTorch's loss on all samples in every step, and the parameters are
// PyTorch's at the end.
std::string difference_from_pytorch(World& world, const MakeStrategy& make_strategy);

}  // namespace ddp::test
