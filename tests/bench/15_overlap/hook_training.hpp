#pragma once
// A short training with a bucket hook, and what the hook saves and loses in it.
#include <string>

#include "05_ranks/rank.hpp"
#include "15_overlap/power_sgd.hpp"
#include "common/data/images.hpp"

namespace ddp {

struct HookTraining {
    int steps = 60;
    int start_step = PowerSgdOptions().start_step;  // PowerSGD averages until then
};

// The result of a short training with one hook.
struct HookResult {
    std::size_t bytes = 0;  // passed to all-reduces by a rank in the last step
    double step_error = 0;  // relative error of the last step's gradient
    double sum_error = 0;   // relative error of the sum of all steps' gradients
    double loss = 0;        // mean over the ranks and the last ten steps
};

// Trains the MLP 784-256-256-10 with one hook: a name of hook_names(), "power_sgd 4" or "power_sgd
// 4, no feedback". All ranks call it together.
HookResult learn_with_hook(Rank& rank, const LabelledImages& images, const std::string& name,
                           const HookTraining& training, std::uint64_t seed);

}  // namespace ddp
