#pragma once
// What goes wrong in a supervised job, on purpose.
#include <string>
#include <vector>

#include "17_checkpoint_failover/supervisor.hpp"

namespace ddp {

struct Fault {
    enum class Kind { kill, kill_while_saving, stop };

    Kind kind = Kind::kill;
    int rank = 0;
    int step = 0;  // when the job has reported it, or writes a checkpoint of it or a later one
    // When it happened; set by Faults.
    double time_s = -1;
    int at_step = 0;

    std::string text() const;  // "kill -9 of rank 2"
};

// Lets one fault happen in each of a job's lives: a Supervisor::Watch.
class Faults {
  public:
    explicit Faults(std::vector<Fault> faults) : faults_(std::move(faults)) {}

    void watch(SupervisedProcess& job, const Attempt& attempt, double now_s);
    // Those that have happened: number i ended attempt i.
    std::vector<Fault> happened() const { return {faults_.begin(), faults_.begin() + next_}; }

  private:
    std::vector<Fault> faults_;
    int next_ = 0;
    double attempt_s_ = -1;  // when the attempt began in which the last one happened
};

// The process of rank `rank`, or 0 while it is not known.
pid_t process_of(const Attempt& attempt, int rank);

}  // namespace ddp
