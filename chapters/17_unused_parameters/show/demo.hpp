#pragma once
// A failure case and its cure, one after the other in the same program.
#include "05_ranks/world.hpp"
#include "17_unused_parameters/show/failure_cases.hpp"
#include "common/report/csv.hpp"

namespace ddp {

class Demo {
  public:
    // `world` must outlive this object. The timelines of the step that hangs and of the same step
    // cured are written beside the program's own table: out/NAME.csv gives out/NAME_timeline.csv.
    Demo(World& world, const CommonOptions& common);

    // Runs the training that fails and prints its error and, where ranks wait in vain, the desync
    // report; then runs the cured training. A world of one rank, where no rank waits, runs the cure
    // only. Throws std::logic_error if the first training does not fail, and RunFailed if the cured
    // one does not learn what one rank learns from all batches.
    void show(FailureCase failure);

  private:
    void fail(FailureCase failure);
    void cure(FailureCase failure);
    double train(Rank& rank, FailureCase failure, bool is_cured);
    void report(Rank& rank);
    void write_timeline(Rank& rank, const std::string& part);

    World& world_;
    const std::uint64_t seed_;
    CsvWriter timeline_;
    std::vector<RecordedState> recorded_;  // by rank: what the last training has left
};

}  // namespace ddp
