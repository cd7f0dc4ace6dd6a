#pragma once
// The gradients in the buckets of a plan.
#include "14_buckets/bucket_plan.hpp"

namespace ddp::test {

// Returns the gradients of each bucket of the plan.
inline BucketAssignment buckets_of(const BucketPlan& plan) {
    BucketAssignment buckets;
    for (const BucketPlan::Bucket& bucket : plan.buckets)
        buckets.push_back(bucket.gradients);
    return buckets;
}

}  // namespace ddp::test
