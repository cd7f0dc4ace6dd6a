#pragma once
// The report of the training itself: a line for every epoch, the memory of a rank, and the result.
#include <filesystem>

#include "01_sgd/sgd.hpp"
#include "03_network/metrics.hpp"
#include "05_ranks/rank.hpp"
#include "10_nodes/communicator/node_order.hpp"
#include "14_buckets/bucket_plan.hpp"
#include "common/report/bench.hpp"
#include "common/report/csv.hpp"

namespace ddp {

class TrainingReport {
  public:
    // Starts the clock. Only a rank that prints writes the table `csv` (empty: none).
    TrainingReport(bool prints, const std::filesystem::path& csv);

    // Adds epoch `epoch`, at whose end `steps` steps have been made in all.
    void add(int epoch, int steps, const Metrics::Totals& trained, const Metrics::Totals& tested);
    // Prints the hash of the parameters, the test accuracy of the last epoch, and the order in
    // which sums between nodes were made. `are_equal`: whether the replicas should be.
    void finish(const Rank& rank, const Parameters& parameters, const AllReduceOrder& order,
                bool are_equal = true) const;

  private:
    const bool prints_;
    CsvWriter csv_;
    const Stopwatch watch_;
    double test_accuracy_ = 0;
};

// Prints the memory of a rank that trains `parameters` by SGD with momentum and keeps its gradients
// by `plan`.
void show_memory(const Device& device, const Parameters& parameters, const BucketPlan& plan);

}  // namespace ddp
