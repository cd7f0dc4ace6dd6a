#pragma once
// A failure and its cure, shown one after the other in the same program.
#include "05_ranks/world.hpp"
#include "15_unused_parameters/show/failure_cases.hpp"
#include "common/report/csv.hpp"

namespace ddp {

class Demo {
  public:
    // The world must live longer. The step that hangs, and the same step cured, are written beside
    // the run's own table: out/NAME.csv gives out/NAME_timeline.csv.
    Demo(World& world, const CommonOptions& common);

    // The training that goes wrong, what is said of it and, where ranks wait in vain, what each was
    // doing; then the one that is cured of it. A world of one rank, where nobody waits, has the
    // cure alone. Throws std::logic_error if all went well, and RunFailed if the cured one does not
    // learn what one rank learns from all batches.
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
    std::vector<RecordedState> recorded_;  // by rank; of the last training
};

}  // namespace ddp
