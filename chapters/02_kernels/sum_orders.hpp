#pragma once
// The sum of the same floats in several orders. Each addition rounds, so each order has its own
// sum.
#include <span>
#include <vector>

namespace ddp {

// From the first to the last, or from the last to the first: n - 1 additions in a row.
float sum_forward(std::span<const float> values);
float sum_backward(std::span<const float> values);

// Neighbours are added, then neighbours among their sums, and so on: the tree of `interleaved`. The
// last of an odd number stays as it is.
float sum_of_neighbours(std::vector<float> values);

// The second half is added to the first, and so on: the tree of `sequential`.
float sum_of_halves(std::vector<float> values);

// In double, which for up to 2^20 floats of similar size loses nothing that a float would show.
double sum_in_double(std::span<const float> values);

// By how many units of the last place of a float `sum` differs from `exact`.
double error_in_last_places(float sum, double exact);

}  // namespace ddp
