// A step, and what failures cost. A step with two buckets, whose first all-reduce takes longer:
//
//     forward ── backward of bucket 0 ── backward of bucket 1 ── (wait) ──────── optimizer
//                                     └ all-reduce of 0 ───────┬ all-reduce of 1 ┘
//     ready_s    moves on with backward; an all-reduce begins when its bucket is ready and when
//     reduced_s  its predecessor has ended
//
// The job works for T seconds, saves for `save_s`, and so on until it fails. Unsaved work is lost,
// and the job works again `restart_s` later:
//
//     T ── save ── T ── save ── T  ✗ ── restart ── T ── save ──
//     counts       counts      lost
#include "21_cluster/simulated_training.hpp"

#include <algorithm>
#include <cmath>

#include "common/data/random.hpp"

namespace ddp::simulator {

double Step::compute_s() const {
    double sum_s = forward_s + optimizer_s;
    for (const Bucket& bucket : buckets)
        sum_s += bucket.backward_s;
    return sum_s;
}

// Without overlap each bucket is "ready" when backward has ended.
double step_s(const Step& step, const Seconds& all_reduce_s, bool overlap, double slowest) {
    const double backward_end_s = slowest * (step.compute_s() - step.optimizer_s);
    double ready_s = slowest * step.forward_s, reduced_s = 0;
    for (const Bucket& bucket : step.buckets) {
        ready_s += slowest * bucket.backward_s;
        const double begin_s = std::max(reduced_s, overlap ? ready_s : backward_end_s);
        reduced_s = begin_s + all_reduce_s(bucket.bytes);
    }
    return std::max(reduced_s, backward_end_s) + slowest * step.optimizer_s;
}

double jittery_step_s(const Step& step, const Seconds& all_reduce_s, bool overlap, int ranks,
                      double jitter, int steps, Delays delays) {
    Random random(1);
    double sum_s = 0;
    for (int i = 0; i < steps; i++) {
        // One draw for all ranks: the largest of N delays is below x at (1 - e^-x)^N, or (x / 2)^N.
        const double chance_of_one = std::pow(double{random.uniform(0, 1)}, 1.0 / ranks);
        const double largest =
            delays == Delays::exponential ? -std::log1p(-chance_of_one) : 2 * chance_of_one;
        sum_s += step_s(step, all_reduce_s, overlap, 1 + jitter * largest);
    }
    return sum_s / steps;
}

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
