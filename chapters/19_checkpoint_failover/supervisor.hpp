#pragma once
// The supervisor: starts a job, notices when it fails or stops, ends its last processes, and starts
// it again until it has done its work. The job itself must continue from its last checkpoint.
// (torchrun's elastic agent does the same.)
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "19_checkpoint_failover/job/job.hpp"
#include "19_checkpoint_failover/job/preemption.hpp"
#include "19_checkpoint_failover/job/status_line.hpp"

namespace ddp {

// All times in seconds.
struct SupervisorOptions {
    int max_restarts = 3;
    double start_s = 30;    // a job without a step so far has stopped if it is silent for so long
    double silence_s = 60;  // the same after its first step, if steps are fast
    double patience_s = 2;  // a failed job may take so long to end by itself
};

// A status line and the time at which it came, in seconds since the supervisor began.
struct TimedStatus {
    double time_s;
    StatusLine status;
};

// One start of the job, until its last process has ended. Times are in seconds since the supervisor
// began.
struct Attempt {
    std::vector<std::string> command;
    double begin_s = 0;
    double noticed_s = 0;  // its failure, or its success, was noticed
    double end_s = 0;      // the last of its processes has ended
    int status = 0;        // exit status
    std::string cause;     // the first error; "" if it has done its work. None if it is_preempted()
    std::vector<TimedStatus> status_lines;
    std::vector<std::string> last_lines;  // of messages that are not ours: mpirun's, for example
    // The steps that rank 0 has reported.
    std::int64_t heard_step = 0;
    double heard_s = 0;            // when the line came
    double slowest_step_s = 0;     // 0: no step yet
    bool was_told_to_end = false;  // by this supervisor
    bool says_why = false;         // a rank or our launcher gave the cause, or the job was silent

    // Returns whether it has ended because it was told to.
    bool is_preempted() const { return was_told_to_end || status == status_of_preemption; }
    // Returns whether any rank has sent a line of this kind.
    bool has(const std::string& what) const;
    // Returns when the last of the ranks sent its first line of this kind; 0 if no rank has.
    double time_of(const std::string& what) const;
    // Returns the largest step of any status line.
    int last_step() const;
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
    void time_step(Attempt& attempt, const StatusLine& status) const;
    void read_line(const std::string& line, SupervisedProcess& job, Attempt& attempt);

    const SupervisorOptions options_;
    const NextCommand next_command_;
    const Watch watch_;
    const double start_s_;    // when the supervisor began, on the steady clock
    std::string node_;        // this machine's name
    double last_line_s_ = 0;  // when the job's last line came
};

}  // namespace ddp
