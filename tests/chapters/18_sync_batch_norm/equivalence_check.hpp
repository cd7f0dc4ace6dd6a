#pragma once
// Compares a layer on several ranks with BatchNorm2d on one rank that has the batches of all.
#include <functional>
#include <memory>
#include <vector>

#include "03_network/layers/batch_norm2d.hpp"
#include "09_all_reduce/communicator.hpp"

namespace ddp::test {

// Makes the layer to be checked from a BatchNorm2d.
using MakeNorm = std::function<std::unique_ptr<Module>(std::unique_ptr<BatchNorm2d> plain,
                                                       Communicator& communicator)>;
// Returns the chapter's layer, as a MakeNorm.
std::unique_ptr<Module> make_sync_batch_norm(std::unique_ptr<BatchNorm2d> plain,
                                             Communicator& communicator);

// The largest difference on any rank, for each result of the layer, relative to the largest number
// of the expected result; infinite where a result is not finite.
struct Differences {
    double output = 0, running_mean = 0, running_var = 0;
    double input_gradient = 0;
    double parameter_gradients = 0;  // of weight and bias, added up over the ranks
    double largest() const;
};

// Makes two steps with both layers and compares what they leave behind. Rank r has counts[r]
// pictures, 0 or more, and each rank's pictures have their own brightness; the loss is a weighted
// sum of all outputs. All ranks call it together, with the same arguments. Takes about 64 KiB from
// the communicator.
Differences compare_with_union(Device& device, Communicator& communicator, const MakeNorm& make,
                               const std::vector<int>& counts, std::uint64_t seed);

// Returns how many pictures each rank has in three comparisons: equal counts; unequal ones; and
// none on the last rank, if there are two.
std::vector<std::vector<int>> picture_counts(int ranks);

}  // namespace ddp::test
