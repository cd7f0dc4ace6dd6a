#pragma once
// The simulator on the command line: which cluster, which step, which failures.
#include <string>

#include "common/report/options.hpp"

namespace ddp {

struct SimulatorOptions {
    int ranks_per_host = 8, ports = 8, most_ranks = 4096, hosts_per_leaf = 0;
    double oversubscription = 1, jitter = 0.03, rank_fails_h = 50'000, save_s = 60, restart_s = 600;
    std::string inside = "370GB/s,2us", between = "48GB/s,14us", links, step;
};
void add_simulator_options(Options& options, SimulatorOptions& mine);

// Simulates what the options ask for, and prints the tables. Throws OptionError if the options do
// not fit together, and DataError if a file cannot be read.
void simulate(const SimulatorOptions& mine, const CommonOptions& common);

}  // namespace ddp
