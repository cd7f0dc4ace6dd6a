#pragma once
// The training of the golden curves: weights and samples by the formula (tests/support/golden.hpp).
#include <string>
#include <vector>

#include "03_network/layer.hpp"
#include "03_network/loader.hpp"
#include "tests/support/golden.hpp"

namespace ddp::test {

// The weights that a golden curve begins with. BatchNorms ("norm1.weight") keep theirs.
void set_golden_weights(const Module& model);

// Every `ranks`-th of the samples begin, ..., end - 1, from number `rank` on: all of them, where
// rank 0 of 1 asks.
std::vector<int> part_of(int begin, int end, int rank = 0, int ranks = 1);

// These samples, with pictures of the given shape.
Batch golden_samples(Device& device, const std::vector<int>& samples, const Shape& picture);

// Empty if the sum of the tensor's values and that of their magnitudes are those of `name` in the
// golden file, to `tolerance` of the latter; otherwise how they differ.
std::string sums_difference(const std::string& name, const Tensor& tensor, const Golden& golden,
                            double tolerance);

}  // namespace ddp::test
