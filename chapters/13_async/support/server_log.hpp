#pragma once
// The log of a server, and the rules that it keeps, whatever the order of the run. The experiment
// checks them after each run: a gradient that is lost, or applied twice, would otherwise look like
// noise.
#include <string>
#include <vector>

namespace ddp {

struct ServerOptions;

// One gradient that the server has applied. The version of the parameters is the number of updates
// so far. An update is one gradient or, synchronously, one gradient of every worker.
struct Applied {
    int worker = 0;
    int step = 0;        // the worker's own number, from 0
    int read = 0;        // the version that the gradient was computed with
    int applied_to = 0;  // the version that it has changed
    double loss = 0;     // of the worker's samples
    double seconds = 0;  // since the beginning

    // Returns the updates between the parameters it was computed with and those it was applied to.
    int staleness() const { return applied_to - read; }
};

struct ServerLog {
    std::vector<Applied> applied;
    int max_ahead = 0;  // the largest lead of any worker over the slowest, in steps
    double seconds = 0;

    // Returns the number of versions that the parameters have had after the first.
    int updates() const { return applied.empty() ? 0 : applied.back().applied_to + 1; }
    // Return the mean and the largest staleness of all gradients, in updates; 0 if there are none.
    double mean_staleness() const;
    int max_staleness() const;
};

// Checks a log against the rules of such a server: every gradient is applied once, in its worker's
// order, as many as were asked for, and neither lead nor staleness exceed the bound. Returns "" or
// the first rule that is broken.
std::string what_is_wrong(const ServerLog& log, const ServerOptions& options);

}  // namespace ddp
