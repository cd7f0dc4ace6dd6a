#include "12_async/staleness_gate.hpp"

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
            "a turnstile needs a worker, and no negative bound or steps; not " +
            std::to_string(workers) + " workers, bound " + std::to_string(bound.value_or(0)) +
            " and " + std::to_string(steps) + " steps");
}

void StalenessGate::arrive(int worker) {
    const std::size_t at = static_cast<std::size_t>(worker) - 1;
    if (waiting_.at(at))
        throw std::logic_error("worker " + std::to_string(worker) + " is here already");
    waiting_[at] = true;
    done_[at]++;
}

int StalenessGate::ahead_of_slowest(int worker) const {
    return done_by(worker) - *std::ranges::min_element(done_);
}

std::vector<StalenessGate::Pass> StalenessGate::let_through() {
    std::vector<Pass> passes;
    for (int worker = 1; worker <= static_cast<int>(done_.size()); worker++) {
        const int ahead = ahead_of_slowest(worker);
        const bool goes_on = left_ > 0;
        if (!waiting_[static_cast<std::size_t>(worker) - 1] || (goes_on && !may_begin(ahead)))
            continue;
        waiting_[static_cast<std::size_t>(worker) - 1] = false;
        passes.push_back({worker, goes_on});
        if (goes_on) {
            left_--;
            most_ahead_ = std::max(most_ahead_, ahead);
        }
    }
    return passes;
}

}  // namespace ddp
