#pragma once
// Tables of what the simulator predicts: all-reduces, the efficiency of a training, failures.
#include <filesystem>

#include "21_cluster/failures.hpp"
#include "21_cluster/measured/comparison.hpp"
#include "21_cluster/measured/own_files.hpp"
#include "21_cluster/simulated_all_reduce.hpp"
#include "common/report/csv.hpp"

namespace ddp {

// The cluster that is asked about; its nodes are as many as each row of a table needs.
struct Question {
    simulator::Cluster node;  // one of them
    int max_ranks = 4096;
    simulator::Step step;
    double bytes = 0;      // of the all-reduces in the first table
    double jitter = 0.03;  // of each rank in each step, on average, as a share of its compute
    simulator::Delays delays = simulator::Delays::exponential;
    simulator::Failures failures;  // mean_s: of one rank
};

// Prints the step in the file beside what the model makes of it if its all-reduces take what they
// took: the error of the model of a step alone.
void show_recorded_step(const std::filesystem::path& path, const RecordedStep& recorded);

// Returns the columns of the one file that a run writes: every prediction, and what was measured
// where something was.
std::vector<std::string> prediction_columns();

// Prints the times of all-reduces and the efficiencies, with the errors of earlier predictions, and
// writes them to `file`.
void show_scaling(const Question& question, const std::vector<Comparison>& comparisons,
                  CsvWriter& file);

// Prints what failures cost, and how often to save.
void show_failures(const Question& question, const std::vector<Comparison>& comparisons,
                   CsvWriter& file);

// Prints the published numbers, each with its prediction and its error, and writes all comparisons
// to `file`.
void show_published(const std::vector<Comparison>& comparisons, CsvWriter& file);

}  // namespace ddp
