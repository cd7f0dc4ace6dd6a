#pragma once
// Exercise skip_together: if a gradient overflows on one rank, no rank steps.
#include <functional>
#include <vector>

#include "exercises/not_implemented.hpp"
#include "exercises/sum_over_ranks.hpp"

namespace ddp {

// Task decide. Returns whether all ranks may step: whether all numbers of all ranks are finite.
//
//     the ranks have the gradients (1, 2), (inf, 1) and (0, 3): false on all three
//
// You may call: sum_over_ranks(), once; std::isfinite().
// The check also tries: NaN, minus infinity, an empty gradient, one rank.
bool may_step(const std::vector<float>& gradient, const SumOverRanks& sum_over_ranks);

// Holds the factor of the loss, and how many steps have been taken since it last changed.
struct Scale {
    double value = 65536;
    int good_steps = 0;
};

// Task rescale. Returns the scale for the next step: half of it after a step that was left out,
// twice as much after `interval` steps in a row.
//
//     interval 2, from 32768: step, step gives 65536; step, none gives 16384
Scale next_scale(const Scale& scale, bool has_stepped, int interval);

// Holds what a rank can call in a step. All ranks call the first two, in the same order.
struct Training {
    SumOverRanks sum_over_ranks;
    std::function<void(std::vector<float>& gradient)> average;  // over the ranks
    std::function<std::vector<float>(double scale)> backward;   // the rank's own gradient, scaled
    std::function<void(const std::vector<float>& gradient)> step;  // the optimizer's
};

// Task whole_step. Goes through one step of training: backward; may all step? If so, the average,
// unscaled, then clipped, and the optimizer's step. In both cases the scale for the next one.
//
//     scale 4, max_norm 1: backward gives (8, 0) and (16, 16) on two ranks, so their average is
//     (12, 8), unscaled (3, 2), clipped (0.832, 0.555)
//
// You may call: your two functions, and what is in `training`.
void train_step(const Training& training, Scale& scale, int interval, double max_norm);

}  // namespace ddp
