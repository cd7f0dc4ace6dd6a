#pragma once
// Staleness by numbers: a network of one parameter, and workers whose reads and gradients come in
// an order that one can follow.
#include <string>
#include <vector>

#include "12_async/server.hpp"

namespace ddp {

// The loss is (w - target)^2 / 2, so the gradient is w - target.
struct OneParameter {
    float begin = 0, target = 8, learning_rate = 0.25f;
};

// What a worker does: reads the parameter, or has its gradient at what it has read applied.
struct Action {
    int worker;  // from 1
    enum What { reads, is_applied } what;
};

// One update, with all that led to it.
struct OneUpdate {
    int worker = 0;
    int read = 0, applied_to = 0;  // versions: updates before it
    float computed_at = 0, before = 0, after = 0;
    std::vector<int> contains;  // how many updates of each worker were in what was read

    int staleness() const { return applied_to - read; }
    float gradient(const OneParameter& model) const { return computed_at - model.target; }
};

// Action after action. All workers have read the beginning.
std::vector<OneUpdate> play(const OneParameter& model, int workers,
                            const std::vector<Action>& actions);

// What a server and its workers have done, by its log.
std::vector<Action> actions_of(const ServerLog& log);

// Six updates of three workers, synchronously and not. Prints.
void show_staleness();

}  // namespace ddp
