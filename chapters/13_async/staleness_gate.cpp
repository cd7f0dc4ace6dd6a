// The gate, with a bound of 2:
//
//                steps done
//     worker 1   ###           3   the slowest
//     worker 2   #####         5   2 ahead: may begin another step
//     worker 3   ######        6   3 ahead: waits until worker 1 has done its fourth
//
// A bound of 0 is synchronous training: all workers do step n before any of them begins n + 1.
// Without a bound it is asynchronous training.
#include "13_async/staleness_gate.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace ddp {

StalenessGate::StalenessGate(int workers, std::optional<int> bound, int steps)
    : bound_(bound),
      left_(steps),
      done_(static_cast<std::size_t>(std::max(workers, 0))),
      waiting_(done_.size(), true) {
    if (workers < 1 || bound.value_or(0) < 0 || steps < 0)
        throw std::invalid_argument(
            "a staleness gate needs a worker, and no negative bound or steps");
}

void StalenessGate::arrive(int worker) {
    const std::size_t at = static_cast<std::size_t>(worker) - 1;
    if (waiting_.at(at))
        throw std::logic_error("worker " + std::to_string(worker) + " is at the gate already");
    waiting_[at] = true;
    done_[at]++;
}

std::vector<StalenessGate::Pass> StalenessGate::let_through() {
    std::vector<Pass> passes;
    // The slowest is 0 steps ahead of itself, and so never held back: there is no deadlock.
    const int slowest = *std::ranges::min_element(done_);
    // One arrival can free several workers, so look at all of them.
    for (std::size_t at = 0; at < done_.size(); at++) {
        const int ahead = done_[at] - slowest;
        // When no step is left, every waiting worker can leave, whatever its lead.
        const bool goes_on = left_ > 0;
        if (!waiting_[at] || (goes_on && !may_begin(ahead)))
            continue;
        waiting_[at] = false;
        passes.push_back({static_cast<int>(at) + 1, goes_on});
        if (goes_on) {
            left_--;
            max_ahead_ = std::max(max_ahead_, ahead);
        }
    }
    return passes;
}

}  // namespace ddp
