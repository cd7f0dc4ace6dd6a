#pragma once
// The simulator on the command line: which cluster, which step, which failures.
#include <optional>
#include <string>

#include "21_cluster/measured/own_files.hpp"
#include "21_cluster/show/predictions.hpp"
#include "common/report/options.hpp"

namespace ddp {

struct SimulatorOptions {
    int ranks_per_node = 8, ports = 8, max_ranks = 4096, nodes_per_leaf = 0;
    double oversubscription = 1, jitter = 0.03, rank_fails_h = 50'000, save_s = 60, restart_s = 600;
    std::string inside = "370GB/s,2us", between = "48GB/s,14us", links, step;
    std::string delays = "exponential";
    int bytes = 0;
};
void add_simulator_options(Options& parser, SimulatorOptions& options);

// A question, and the recorded step that it is about, if it is about one.
struct Simulation {
    Question question;
    std::string step_file;
    std::optional<RecordedStep> recorded;
};
// Returns what the options ask for. Throws OptionError if they do not fit together, and DataError
// if a file cannot be read.
Simulation simulation_of(const SimulatorOptions& options, const CommonOptions& common);

// Simulates it, and prints the tables.
void simulate(const Simulation& simulation, const CommonOptions& common);

}  // namespace ddp
