// The exercise save_interval: the cost of saving, and of not saving. Read
// exercises/19_checkpoint_failover/README.md first.
#include "exercises/19_checkpoint_failover/save_interval.hpp"

#include <algorithm>
#include <cmath>

namespace ddp {

double finish(const RunCosts& costs, int steps, int interval, const std::vector<double>& failures) {
    // stub: finish
    //: From one complete checkpoint to the next: either no failure comes before it, or one does.
    double now = 0;
    auto failure = failures.begin();
    for (int saved = 0; saved < steps;) {
        const int next = std::min(interval, steps - saved);
        const double whole = now + next * costs.step + costs.save;
        if (failure == failures.end() || *failure >= whole) {
            now = whole;
            saved += next;
            continue;
        }
        now = *failure++ + costs.restart;
        while (failure != failures.end() && *failure < now)
            now = *failure++ + costs.restart;
    }
    return now;
    // end stub
}

double expected_step(const RunCosts& costs, int interval, double between_failures) {
    // stub: expected
    //: How long does it take on average until some seconds have passed without a failure?
    const double segment = interval * costs.step + costs.save;
    return between_failures * std::exp(costs.restart / between_failures) *
           std::expm1(segment / between_failures) / interval;
    // end stub
}

int best_interval(const RunCosts& costs, double between_failures, int most) {
    // stub: best
    int best = 1;
    for (int interval = 2; interval <= most; interval++)
        if (expected_step(costs, interval, between_failures) <
            expected_step(costs, best, between_failures))
            best = interval;
    return best;
    // end stub
}

}  // namespace ddp
