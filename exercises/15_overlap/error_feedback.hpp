#pragma once
// The contract of the exercise error_feedback: a bucket is compressed to its largest elements, and
// what was not sent is not lost.
#include <cstddef>
#include <vector>

#include "06_messages/point_to_point.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// The elements of a bucket that a rank sends, by ascending index.
struct LargestElements {
    std::vector<int> indices;
    std::vector<float> values;
};

// Task compress. Returns the `k` elements of gradient + error that are largest in magnitude; among
// equal ones those with the lowest indices. `error` holds what this rank has not sent in earlier
// steps (0 at first), and is updated to what it has not sent now. It is as long as the gradient; k
// is at most that length, and may be 0. No element is NaN.
LargestElements compress(const std::vector<float>& gradient, std::size_t k,
                         std::vector<float>& error);

// Task mean. Returns the bucket with which all ranks continue: the mean over the ranks of what each
// of them has sent. A rank that has not sent an element has sent a 0.
std::vector<float> mean_of(const std::vector<LargestElements>& sent, std::size_t elements);

// Task break_even. Returns the k with which an all-gather of all lists takes as long as the
// two-shot all-reduce of the whole bucket (two_shot_seconds in 09_all_reduce/cost.hpp). An index
// has 4 bytes, and so has a value; the all-gather takes one latency. The bucket has `elements`
// floats. There are at least two ranks.
double break_even(const CostModel& message, int ranks, std::size_t elements);

}  // namespace ddp
