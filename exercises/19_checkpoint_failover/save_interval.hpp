#pragma once
// The contract of the exercise save_interval: how often to save. Nothing is run: you compute times.
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// The costs of a training, in seconds.
struct RunCosts {
    double step;     // one step of training
    double save;     // one checkpoint, for which the training stands still
    double restart;  // from a failure until the training continues from the last checkpoint
};

// Task finish. Returns the time at which a training ends. It has `steps` steps, from 1 to 1e9, and
// saves after every `interval` steps, 1 or more, and after the last one. A failure comes at each of
// `failures`, ascending times in seconds from the beginning, whatever the training is doing. It
// loses all work since the last complete checkpoint. A checkpoint is complete when its `save`
// seconds are over; a failure at exactly that moment does not harm it. A failure during a restart
// begins the restart again. The beginning costs no restart, and the training ends when its last
// checkpoint is complete.
double finish(const RunCosts& costs, int steps, int interval, const std::vector<double>& failures);

// Task expected. Returns the seconds that a training takes for one step on average, in a run so
// long that its ends do not matter. Failures now come at random: the times between them are
// exponentially distributed, with a mean of `between_failures` seconds, which is from 1 to 1e9.
double expected_step(const RunCosts& costs, int interval, double between_failures);

// Task best. Returns the interval, from 1 to `most`, for which that is smallest. `most` is a
// million at most.
int best_interval(const RunCosts& costs, double between_failures, int most);

}  // namespace ddp
