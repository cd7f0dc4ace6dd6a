#pragma once
// The contract of the exercise best_cap: how large should buckets be? By what an all-reduce takes,
// and how fast backward is.
#include <cstddef>

#include "06_messages/point_to_point.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Backward takes `backward_s`, and makes `gradients` gradients of `bytes` bytes each, evenly:
// number i, from 0, is ready after (i + 1) / gradients of that time. The all-reduce of a bucket
// begins when its last gradient is ready and the all-reduce of the bucket before it has ended, and
// takes all_reduce.seconds(bytes of the bucket).
struct BackwardPass {
    int gradients;
    std::size_t bytes;
    double backward_s;
    CostModel all_reduce;
};

// Task exposed. How many seconds after the end of backward is the last bucket reduced, if each has
// `per_bucket` gradients, and the last one what is left?
double exposed_seconds(const BackwardPass& pass, int per_bucket);

// Task best. How many bytes should a bucket have, so that this is as little as possible? By a
// formula: gradients are so many and so small that a bucket may have any size, up to all of them.
double best_bucket_bytes(const BackwardPass& pass);

}  // namespace ddp
