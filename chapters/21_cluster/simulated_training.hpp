#pragma once
// A step of DistributedDataParallel on many ranks, and a training whose job fails now and then.
//
//     compute          forward ── backward ─┬─────┬───┬ (wait) ── optimizer    the slowest rank's
//     communication                         └ all-reduce ── all-reduce ──┘     of all ranks
//
//     work T ──[save]── work T ──[save]── work ✗ lost ── restart ── work T ──[save]──
#include <functional>
#include <vector>

namespace ddp::simulator {

struct Bucket {
    double backward_s;  // since the bucket before was ready, or since the end of forward
    double bytes;
};

struct Step {
    double forward_s = 0;
    std::vector<Bucket> buckets;  // in the order of their all-reduces
    double optimizer_s = 0;

    double compute_s() const;  // what the step takes on one rank
};

using Seconds = std::function<double(double bytes)>;  // of an all-reduce

// Returns the time of a step whose slowest rank computes `slowest` times as long. All ranks begin
// together; an all-reduce begins when the last rank has the bucket and the one before is done.
double step_s(const Step& step, const Seconds& all_reduce_s, bool overlap, double slowest = 1);

// Says how a rank's delays are spread, mean 1: most are short, and a few many times as long;
// or every one between 0 and 2 is as likely as the others.
enum class Delays { exponential, even };

// Returns the mean of `steps` steps in which each rank computes 1 + jitter x times as long: x is
// one of these delays, drawn anew for each rank and step.
double jittery_step_s(const Step& step, const Seconds& all_reduce_s, bool overlap, int ranks,
                      double jitter, int steps, Delays delays = Delays::exponential);

struct Failures {
    double mean_s;     // from one failure of the job to the next, on average
    double save_s;     // for which a checkpoint keeps the training from working
    double restart_s;  // from a failure until the training works again
};

// Returns the work between two checkpoints that costs least. To a first order it is
// sqrt(2 save mean): Young, "A first order approximation to the optimum checkpoint interval",
// CACM 17 (1974). This is Daly's next order: "A higher order estimate of the optimum checkpoint
// interval for restart dumps", Future Generation Computer Systems 22 (2006).
double best_interval_s(const Failures& failures);

// Returns the share of the time that is work which counts, by Daly's formula for failures that come
// at random (exponentially), and during checkpoints and restarts, too.
double useful_share(const Failures& failures, double interval_s);

// Returns the same by simulation, until the job has failed `count` times.
double simulated_useful_share(const Failures& failures, double interval_s, int count);

}  // namespace ddp::simulator
