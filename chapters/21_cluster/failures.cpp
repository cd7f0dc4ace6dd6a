// The job works for T seconds, saves for `save_s`, and so on until it fails. Unsaved work is lost,
// and the job works again `restart_s` later:
//
//     T ── save ── T ── save ── T  ✗ ── restart ── T ── save ──
//     counts       counts      lost
#include "21_cluster/failures.hpp"

#include <algorithm>
#include <cmath>

#include "common/data/random.hpp"

namespace ddp::simulator {

// Daly's series in the root of `ratio`. If a checkpoint costs more than twice the mean time between
// failures, he uses that mean itself.
double best_interval_s(const Failures& failures) {
    const double ratio = failures.save_s / (2 * failures.mean_s);
    // The first term is Young's.
    const double young_s = std::sqrt(2 * failures.save_s * failures.mean_s);
    return ratio < 1 ? young_s * (1 + std::sqrt(ratio) / 3 + ratio / 9) - failures.save_s
                     : failures.mean_s;
}

// T seconds of work and their checkpoint take M (e^((T + save) / M) - 1) on average if failures
// come every M seconds; each is followed by a restart, which can fail, too.
double useful_share(const Failures& failures, double interval_s) {
    const double mean_s = failures.mean_s;
    const double from_save_to_save_s = mean_s * std::exp(failures.restart_s / mean_s) *
                                       std::expm1((interval_s + failures.save_s) / mean_s);
    return interval_s / from_save_to_save_s;
}

// Draws the time from failure to failure, and counts the whole intervals that fit in.
double simulated_useful_share(const Failures& failures, double interval_s, int count) {
    Random random(1);
    double passed_s = 0, useful_s = 0;
    for (int i = 0; i < count; i++) {
        const double uptime_s = -failures.mean_s * std::log1p(-double{random.uniform(0, 1)});
        const double working_s = std::max(0.0, uptime_s - failures.restart_s);
        // Work counts once a checkpoint holds it.
        useful_s += interval_s * std::floor(working_s / (interval_s + failures.save_s));
        passed_s += uptime_s;
    }
    return useful_s / passed_s;
}

}  // namespace ddp::simulator
