#pragma once
// The goodput of a training whose job fails now and then.
//
//     work T ──[save]── work T ──[save]── work ✗ lost ── restart ── work T ──[save]──

namespace ddp::simulator {

struct Failures {
    double mean_s;     // from one failure of the job to the next, on average
    double save_s;     // for which a checkpoint stops the training
    double restart_s;  // from a failure until the training works again
};

// Returns the seconds of work between checkpoints that maximize goodput. To a first order that is
// sqrt(2 save mean): Young, "A first order approximation to the optimum checkpoint interval",
// CACM 17 (1974). This is Daly's next order: "A higher order estimate of the optimum checkpoint
// interval for restart dumps", Future Generation Computer Systems 22 (2006).
double best_interval_s(const Failures& failures);

// Returns the goodput, the share of the time that counts, by Daly's formula for exponential
// failures, which also strike during checkpoints and restarts.
double useful_share(const Failures& failures, double interval_s);

// Returns the goodput of a simulated job that fails `count` times.
double simulated_useful_share(const Failures& failures, double interval_s, int count);

}  // namespace ddp::simulator
