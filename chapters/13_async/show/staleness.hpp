#pragma once
// Staleness in small numbers: a network of one parameter, and workers whose reads and gradients
// come in a given order.
#include <vector>

namespace ddp {

// The loss is (w - target)^2 / 2, so the gradient is w - target.
struct OneParameter {
    float begin = 0, target = 8, learning_rate = 0.25f;
};

// A worker reads the parameter, or its gradient at what it read last is applied.
struct Action {
    int worker;  // from 1
    enum What { reads, is_applied } what;
};

// One update: the gradient that was applied, and the parameter before and after.
struct OneUpdate {
    int worker = 0;
    int read = 0, applied_to = 0;  // versions: the number of updates before
    float computed_at = 0, before = 0, after = 0;
    std::vector<int> contains;  // the updates of each worker that were in what was read

    int staleness() const { return applied_to - read; }
    float gradient(const OneParameter& model) const { return computed_at - model.target; }
};

// Carries the actions out, one after the other, and returns the updates. All workers have read
// model.begin before.
std::vector<OneUpdate> play(const OneParameter& model, int workers,
                            const std::vector<Action>& actions);

// Prints six gradients of three workers, applied asynchronously.
void show_staleness();

// Returns how far w still comes from the target in the last 100 of `updates` updates by workers
// that take turns, so that a gradient of W workers is W - 1 updates old.
double distance_after(const OneParameter& model, int workers, int updates);

// Returns the learning rate above which gradients that are all `staleness` updates old diverge on
// OneParameter's parabola: 2 sin(pi / (4 staleness + 2)).
double largest_learning_rate(int staleness);

// Prints which learning rates converge with old gradients.
void show_learning_rates();

}  // namespace ddp
