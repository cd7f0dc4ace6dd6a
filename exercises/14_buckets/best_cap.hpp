#pragma once
// Exercise best_cap: how large should buckets be?
//
//     4 gradients, backward takes 4 s, an all-reduce 1 s and 1 s more for each gradient
//
//     2 in a bucket    ready at    all-reduce
//     bucket 0            2          2 to 5
//     bucket 1            4          5 to 8      exposed: 8 - 4 = 4 s
//
// You may call: all_reduce.seconds(bytes); all_reduce.alpha_s and .beta_s_per_byte; std::sqrt().
// The check also tries: a last bucket with fewer gradients, a bucket with room for more than all.
#include <cstddef>

#include "06_messages/point_to_point.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Backward takes `backward_s` seconds, and computes `gradients` gradients of `bytes` bytes each at
// a constant rate. The all-reduce of a bucket begins when its last gradient is ready and the
// all-reduce of the bucket before it has ended. It takes all_reduce.seconds(bytes of the bucket).
struct BackwardPass {
    int gradients;
    std::size_t bytes;
    double backward_s;
    CostModel all_reduce;
};

// Task exposed. Returns how many seconds after the end of backward the last all-reduce ends, if
// each bucket has `per_bucket` gradients, and the last one those that are left.
double exposed_seconds(const BackwardPass& pass, int per_bucket);

// Task best. Returns how many bytes a bucket should have so that this time is as short as possible.
// Use a formula: gradients are so many and so small that a bucket can have any size, up to all of
// them.
double best_bucket_bytes(const BackwardPass& pass);

}  // namespace ddp
