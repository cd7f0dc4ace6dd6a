#pragma once
// Is a layer on several ranks what BatchNorm2d is on one rank that has the batches of all?
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "03_network/layers/batch_norm2d.hpp"
#include "09_all_reduce/communicator.hpp"

namespace ddp {

// Makes the layer in question from a BatchNorm2d.
using MakeNorm = std::function<std::unique_ptr<Module>(std::unique_ptr<BatchNorm2d> plain,
                                                       Communicator& communicator)>;
std::unique_ptr<Module> make_sync_batch_norm(std::unique_ptr<BatchNorm2d> plain,
                                             Communicator& communicator);

// The largest differences of any rank, each as a part of the largest number that it should be;
// infinite where there is something that is no number.
struct Differences {
    double output = 0, running_mean = 0, running_var = 0;
    double input_gradient = 0;
    double parameter_gradients = 0;  // the sums over the ranks, of weight and of bias
    double largest() const;
};

// Rank r has counts[r] pictures, 0 or more, each rank another brightness; the loss is the sum of
// all outputs, each times a number of its own. Two steps. All ranks call it together, with the same
// arguments. Takes some 64 KiB from the communicator.
Differences compare_with_union(Device& device, Communicator& communicator, const MakeNorm& make,
                               const std::vector<int>& counts, std::uint64_t seed);

// Three ways to deal pictures out to the ranks: as many to each; a rank's number more; none to the
// last one, where there are two.
struct Dealt {
    std::string name;
    std::vector<int> counts;  // by rank
};
std::vector<Dealt> ways_to_deal(int ranks);

// A table of that, for SyncBatchNorm. All ranks call it together; rank 0 prints. Throws
// std::runtime_error if anything differs by more than 1e-5.
void show_equality(Rank& rank, Device& device, std::uint64_t seed);

}  // namespace ddp
