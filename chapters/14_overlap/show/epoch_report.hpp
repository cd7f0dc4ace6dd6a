#pragma once
// What each epoch has brought, for people and as a table, and what is left in the end.
#include <filesystem>

#include "01_sgd/sgd.hpp"
#include "03_network/metrics.hpp"
#include "05_ranks/rank.hpp"
#include "common/report/bench.hpp"
#include "common/report/csv.hpp"

namespace ddp {

class EpochReport {
  public:
    // Times count from here on. A rank that does not print writes no table, either.
    EpochReport(bool prints, const std::filesystem::path& csv);

    // After epoch `epoch` and `steps` steps in all.
    void add(int epoch, int steps, const Metrics::Totals& trained, const Metrics::Totals& tested);
    // The end: the hash of the parameters, and the accuracy of the last epoch.
    void finish(const Rank& rank, const Parameters& parameters) const;

  private:
    const bool prints_;
    CsvWriter csv_;
    const Stopwatch watch_;
    double test_accuracy_ = 0;
};

}  // namespace ddp
