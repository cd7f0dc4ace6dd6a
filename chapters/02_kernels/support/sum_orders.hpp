#pragma once
// The sum of the same floats in several orders. Each addition rounds, so the sums differ.
#include <span>
#include <vector>

namespace ddp {

// Return the sum from the first to the last, or from the last to the first: n - 1 additions in a
// row.
float sum_forward(std::span<const float> values);
float sum_backward(std::span<const float> values);

// Returns the sum by the tree of `interleaved`: adds neighbours, then neighbours among these sums,
// and so on. The last of an odd number of values stays as it is.
float sum_of_neighbours(std::vector<float> values);

// Returns the sum by the tree of `sequential`: adds the second half to the first, and so on.
float sum_of_halves(std::vector<float> values);

// Returns the sum in double. For up to 2^20 floats of similar size its rounding is too small to
// show in a float.
double sum_in_double(std::span<const float> values);

// Returns sum - exact in units of the last place of a float near `exact`.
double error_in_last_places(float sum, double exact);

}  // namespace ddp
