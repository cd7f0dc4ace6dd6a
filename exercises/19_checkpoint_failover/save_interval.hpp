#pragma once
// Exercise save_interval: how often should a training save? Nothing is run: you compute times.
//
//     10 steps of 1 s, saved after every 5; a checkpoint takes 2 s, a restart 5 s; a failure at 9 s
//
//     0           5      7   9         14          19     21
//     | 5 steps   | save | # | restart | 5 steps   | save |      the training ends at 21 s
//
// You may call: std::exp(), std::expm1(), std::sqrt(), as you like.
// The check also tries: a last interval that is shorter, seconds that are no whole numbers.
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// In seconds.
struct RunCosts {
    double step;     // one step of training
    double save;     // one checkpoint, for which the training stands still
    double restart;  // from a failure until the training continues from the last checkpoint
};

// Task finish. Returns when a training of `steps` steps ends, which saves after every `interval`
// steps and after the last one. Each failure, at ascending times in seconds, loses all work since
// the last complete checkpoint.
// Task unlucky. A failure may come during a restart, which then begins again, and when a checkpoint
// has just become complete: that one is safe.
double finish(const RunCosts& costs, int steps, int interval, const std::vector<double>& failures);

// Task expected. Returns the average seconds for one step of a long run. Now failures, also during
// restarts, come at random, every `between_failures` seconds on average (exponentially
// distributed).
double expected_step(const RunCosts& costs, int interval, double between_failures);

// Task best. Returns the interval, from 1 to `most`, for which that is smallest.
int best_interval(const RunCosts& costs, double between_failures, int most);

}  // namespace ddp
