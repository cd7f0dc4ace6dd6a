#pragma once
// The contract of the exercise save_interval: how often to save. Nothing runs here but a clock.
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// All in seconds.
struct RunCosts {
    double step;     // of training
    double save;     // the training stands still meanwhile
    double restart;  // from a failure until training goes on from the last checkpoint
};

// Task finish. When is a training of `steps` steps at its end, which saves after every `interval`
// steps and after the last one? A failure comes at each of `failures`, which ascend and are counted
// from the beginning, whatever goes on. What was done since the last whole checkpoint is then lost;
// a checkpoint is whole when its `save` seconds are over, and one that is just being whole counts.
// A failure in a restart begins the restart anew. The beginning costs no restart, and the training
// is at its end when its last checkpoint is whole.
double finish(const RunCosts& costs, int steps, int interval, const std::vector<double>& failures);

// Task expected. Failures now come at random, at any moment alike: exponentially distributed, with
// a mean of `between_failures` seconds. How many seconds does a training take for one step on
// average, in a run so long that its ends do not count?
double expected_step(const RunCosts& costs, int interval, double between_failures);

// Task best. With which interval, from 1 to `most`, is that least?
int best_interval(const RunCosts& costs, double between_failures, int most);

}  // namespace ddp
