#pragma once
// Where the memory of a rank has gone, for people.
#include "01_sgd/sgd.hpp"
#include "13_buckets/bucket_plan.hpp"

namespace ddp {

// Of a rank that trains `parameters` by SGD with momentum, whose gradients lie as `plan` says.
void show_memory(const Device& device, const Parameters& parameters, const BucketPlan& plan);

}  // namespace ddp
