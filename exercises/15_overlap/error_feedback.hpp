#pragma once
// Exercise error_feedback: a rank sends the largest elements of a bucket, and keeps the rest for
// the next step.
//
//     gradient            1   5   2   3            1   0   2   1
//     + error             0   0   0   0            1   0   2   0
//     sent, k = 2             5       3   k = 1            4
//     error               1   0   2   0            2   0   0   1
//
// You may call: two_shot_seconds(message, ranks, bytes); message.alpha_s, message.beta_s_per_byte.
// The check also tries: numbers below 0, equal ones, a k of 0 and of all; a rank that sends
// nothing.
#include <cstddef>
#include <vector>

#include "09_all_reduce/cost.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// The elements of a bucket that a rank sends, by ascending index.
struct LargestElements {
    std::vector<int> indices;
    std::vector<float> values;
};

// Task compress. Returns the `k` elements of gradient + error that are largest in magnitude; among
// equal ones those with the lowest indices. Leaves in `error` what has not been sent.
LargestElements compress(const std::vector<float>& gradient, std::size_t k,
                         std::vector<float>& error);

// Task mean. Returns the mean over the ranks of what each has sent: a bucket of so many elements.
// A rank that has not sent an element has sent a 0.
std::vector<float> mean_of(const std::vector<LargestElements>& sent, std::size_t elements);

// Task break_even. Returns the k with which an all-gather of all lists takes as long as the
// two-shot all-reduce of the whole bucket, of `elements` floats. An index has 4 bytes, and so has a
// value. The all-gather takes one latency, and each rank receives the lists of the others.
double break_even(const CostModel& message, int ranks, std::size_t elements);

}  // namespace ddp
