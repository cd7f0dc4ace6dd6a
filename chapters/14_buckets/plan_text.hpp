#pragma once
// A plan as a text, for the other ranks, and the checks of what a plan is made of.
#include "14_buckets/bucket_plan.hpp"

namespace ddp {

// Returns the plan as a text for decode_plan.
std::string encode_plan(const BucketPlan& plan);

// Returns the plan in `text`, for this rank's own `gradients`. Throws std::runtime_error with one
// sentence if the text is damaged, or if the plan does not have exactly these gradients, each once.
BucketPlan decode_plan(const std::string& text, const GradientSizes& gradients);

// Throws std::invalid_argument unless there are gradients and limits, and `order` names each
// gradient once.
void require_sound(const GradientSizes& gradients, const std::vector<std::size_t>& limits,
                   const std::vector<std::size_t>& order);

}  // namespace ddp
