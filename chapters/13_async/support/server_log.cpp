#include "13_async/support/server_log.hpp"

#include <algorithm>

#include "13_async/server.hpp"

namespace ddp {

double ServerLog::mean_staleness() const {
    double sum = 0;
    for (const Applied& each : applied)
        sum += each.staleness();
    return applied.empty() ? 0 : sum / static_cast<double>(applied.size());
}

int ServerLog::max_staleness() const {
    int largest = 0;
    for (const Applied& each : applied)
        largest = std::max(largest, each.staleness());
    return largest;
}

std::string what_is_wrong(const ServerLog& log, const ServerOptions& options) {
    if (std::ssize(log.applied) != options.gradients)
        return std::to_string(log.applied.size()) + " gradients were applied, not " +
               std::to_string(options.gradients);
    // Each worker's steps are 0, 1, 2, ... in the log: none lost, none applied twice.
    std::vector<int> steps(static_cast<std::size_t>(options.workers));
    for (const Applied& each : log.applied) {
        const int expected = steps.at(static_cast<std::size_t>(each.worker) - 1)++;
        if (each.step != expected)
            return "worker " + std::to_string(each.worker) + "'s gradient " +
                   std::to_string(each.step) + " was applied where its gradient " +
                   std::to_string(expected) + " was due";
    }
    const std::optional<int> bound = options.lead();
    if (bound && log.max_ahead > *bound)
        return "a worker was " + std::to_string(log.max_ahead) +
               " steps ahead of the slowest, and the bound is " + std::to_string(*bound);
    // While a worker computes its step c, another worker can apply at most its steps c - s to c +
    // s: 2 s + 1 updates from each of the W - 1 others.
    const int most =
        options.is_synchronous ? 0 : (options.workers - 1) * (2 * bound.value_or(0) + 1);
    if (bound && log.max_staleness() > most)
        return "a gradient was " + std::to_string(log.max_staleness()) +
               " updates old, and the bound allows " + std::to_string(most);
    return "";
}

}  // namespace ddp
