#pragma once
// The supervisor: starts a job, notices when it fails or stops, ends its last processes, and starts
// it again until it has done its work. The job itself must continue from its last checkpoint.
// (torchrun's elastic agent does the same.)
#include <functional>
#include <string>
#include <vector>

#include "19_checkpoint_failover/job/attempt.hpp"
#include "19_checkpoint_failover/job/job.hpp"

namespace ddp {

// All times in seconds.
struct SupervisorOptions {
    int max_restarts = 3;
    double start_s = 30;    // a job without a step so far has stopped if it is silent for so long
    double silence_s = 60;  // the same after its first step, if steps are fast
    double patience_s = 2;  // a failed job may take so long to end by itself
};

class Supervisor {
  public:
    // Returns the command of the next attempt. It may differ from the last one, in the number of
    // ranks for example. An empty one means that no node is left to run the job.
    using NextCommand = std::function<std::vector<std::string>(const std::vector<Attempt>& before)>;
    // Called at least every 10 ms while a job runs: the point at which tests and demonstrations
    // kill and stop ranks.
    using Watch = std::function<void(SupervisedProcess& job, const Attempt& attempt, double now_s)>;

    Supervisor(SupervisorOptions options, NextCommand next_command, Watch watch = {});

    // Runs the job until it has done its work, or was told to end; returns all attempts. Throws
    // std::runtime_error with the first cause when it has failed max_restarts + 1 times, or at once
    // if it would fail in the same way again: it has refused its options (exit status 2), or no
    // rank has ever started.
    std::vector<Attempt> run();

  private:
    Attempt attempt(std::vector<std::string> command);
    bool is_to_be_ended(Attempt& attempt, double now_s) const;

    const SupervisorOptions options_;
    const NextCommand next_command_;
    const Watch watch_;
    const double start_s_;  // when the supervisor began, on the steady clock
};

}  // namespace ddp
