#pragma once
// Faults that are made on purpose, in a supervised job.
#include <string>
#include <vector>

#include "19_checkpoint_failover/job/attempt.hpp"
#include "19_checkpoint_failover/job/job.hpp"

namespace ddp {

struct Fault {
    enum class Kind { kill, kill_while_saving, stop };

    Kind kind = Kind::kill;
    int rank = 0;
    // The fault is due once the job has reported this step, or saves it or a later one.
    int step = 0;
    // The number of ranks that die or stop at once, from `rank` on: all those of a node, for
    // example.
    int count = 1;
    // The time at which it happened, in seconds and steps; set by Faults.
    double time_s = -1;
    int at_step = 0;

    std::string text() const;  // "kill -9 of rank 2", "kill -9 of ranks 2 and 3"
};

// Makes one fault in each attempt of a job: a Supervisor::Watch.
class Faults {
  public:
    explicit Faults(std::vector<Fault> faults) : faults_(std::move(faults)) {}

    void watch(SupervisedProcess& job, const Attempt& attempt, double now_s);
    // Returns the faults that have happened: fault i ended attempt i.
    std::vector<Fault> happened() const { return {faults_.begin(), faults_.begin() + next_}; }

  private:
    std::vector<Fault> faults_;
    int next_ = 0;
    double attempt_s_ = -1;  // begin of the attempt with the last fault
};

}  // namespace ddp
