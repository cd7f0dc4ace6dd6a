#pragma once
// Six failure cases, each with its cure. In five of them ranks wait for each other in vain or are
// refused; in the sixth nothing is said, and the replicas drift apart.
#include <string>
#include <vector>

#include "05_ranks/world.hpp"
#include "17_unused_parameters/training/training_run.hpp"
#include "common/report/csv.hpp"

namespace ddp {

enum class FailureCase { branch, uneven, order, shapes, caps, past_ddp };
inline constexpr FailureCase all_failure_cases[] = {FailureCase::branch, FailureCase::uneven,
                                                    FailureCase::order,  FailureCase::shapes,
                                                    FailureCase::caps,   FailureCase::past_ddp};

// Returns the title of the case: "A branch that one rank does not take".
std::string to_string(FailureCase failure);
// Returns the name of its cure: "find_unused_parameters".
std::string cure_of(FailureCase failure);

// Returns this rank's training, with the failure or cured of it. The last rank is the one that is
// different. `timeout_s` bounds the waits of the failing training, in seconds.
Training training_with(FailureCase failure, bool is_cured, int rank, int world_size,
                       double timeout_s);

// Returns the routes of six steps: step 2 leaves out expert 0 on the last rank, step 3 on all
// ranks, step 4 on all ranks but rank 0.
Routes changing_routes(int world_size);
inline constexpr int step_that_hangs = 2;  // of changing_routes, from 0

// Shows a failure case and its cure, one after the other in the same program.
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
