#pragma once
// A step of DistributedDataParallel on many ranks with stragglers.
//
//     compute          forward ── backward ─┬─────┬───┬ (wait) ── optimizer    the slowest rank's
//     communication                         └ all-reduce ── all-reduce ──┘     of all ranks
#include <functional>
#include <vector>

namespace ddp::simulator {

struct Bucket {
    double backward_s;  // since the previous bucket was ready, or since the end of forward
    double bytes;
};

struct Step {
    double forward_s = 0;
    std::vector<Bucket> buckets;  // in the order of their all-reduces
    double optimizer_s = 0;

    double compute_s() const;  // of the step on one rank
};

using Seconds = std::function<double(double bytes)>;  // of an all-reduce

// Returns the time of a step whose straggler computes `slowest` times as long. All ranks begin
// together; an all-reduce begins once the last rank has the bucket and the previous one is done.
double step_s(const Step& step, const Seconds& all_reduce_s, bool overlap, double slowest = 1);

// Names the distribution of a rank's delays, with mean 1: exponential (most are short, a few many
// times as long), or uniform between 0 and 2.
enum class Delays { exponential, even };

// Returns the mean of `steps` steps in which each rank computes 1 + jitter x times as long, with a
// delay x drawn anew for each rank and step.
double jittery_step_s(const Step& step, const Seconds& all_reduce_s, bool overlap, int ranks,
                      double jitter, int steps, Delays delays = Delays::exponential);

}  // namespace ddp::simulator
