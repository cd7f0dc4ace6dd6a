// A step with two buckets, whose first all-reduce takes longer:
//
//     forward ── backward of bucket 0 ── backward of bucket 1 ── (wait) ──────── optimizer
//                                     └ all-reduce of 0 ───────┬ all-reduce of 1 ┘
//     ready_s    moves on with backward; an all-reduce begins when its bucket is ready and when
//     reduced_s  its predecessor has ended
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

}  // namespace ddp::simulator
