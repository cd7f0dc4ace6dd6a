#pragma once
// The contract of the exercise error_feedback: a bucket is compressed to its largest elements, and
// what was not sent is not lost.
#include <cstddef>
#include <vector>

#include "06_messages/point_to_point.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// What a rank sends of a bucket, by ascending index.
struct LargestElements {
    std::vector<int> indices;
    std::vector<float> values;
};

// Task compress. Of gradient + error the `k` elements that are largest in magnitude, and of equal
// ones those with the lowest indices. `error` is what this rank has not sent in earlier steps (0 at
// first), and becomes what it has not sent now. As long as the gradient; k is at most that, and may
// be 0.
LargestElements compress(const std::vector<float>& gradient, std::size_t k,
                         std::vector<float>& error);

// Task mean. The bucket that all ranks go on with: the mean over the ranks of what each of them has
// sent. Who has not sent an element has sent a 0.
std::vector<float> mean_of(const std::vector<LargestElements>& sent, std::size_t elements);

// Task break_even. An index has 4 bytes, and so has a value; every rank gets those of all others by
// an all-gather, which takes one latency. Each rank's bucket has `elements` floats. With which k
// does that take as long as the chapter's direct all-reduce of the bucket (two_shot_seconds in
// 09_all_reduce/cost.hpp)? There are at least two ranks.
double break_even(const CostModel& message, int ranks, std::size_t elements);

}  // namespace ddp
