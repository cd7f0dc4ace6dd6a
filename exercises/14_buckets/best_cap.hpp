#pragma once
// The contract of the exercise best_cap: how large should buckets be, given the time of an
// all-reduce and the speed of backward?
#include <cstddef>

#include "06_messages/point_to_point.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Backward takes `backward_s` seconds, and computes `gradients` gradients of `bytes` bytes each at
// a constant rate: gradient i, from 0, is ready after (i + 1) / gradients of that time. The
// all-reduce of a bucket begins when its last gradient is ready and the all-reduce of the bucket
// before it has ended, and takes all_reduce.seconds(bytes of the bucket).
struct BackwardPass {
    int gradients;
    std::size_t bytes;
    double backward_s;
    CostModel all_reduce;
};

// Task exposed. Returns how many seconds after the end of backward the last bucket is reduced, if
// each bucket has `per_bucket` gradients, and the last one those that are left.
double exposed_seconds(const BackwardPass& pass, int per_bucket);

// Task best. Returns how many bytes a bucket should have so that this time is as short as possible.
// Use a formula: gradients are so many and so small that a bucket may have any size, up to all of
// them.
double best_bucket_bytes(const BackwardPass& pass);

}  // namespace ddp
