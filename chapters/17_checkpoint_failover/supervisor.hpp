#pragma once
// The supervisor: starts a job, notices when it fails or does nothing any more, and starts it anew
// until it has done its work. The job itself must go on from where it was. (What torchrun's elastic
// agent does.)
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "17_checkpoint_failover/job/job.hpp"
#include "17_checkpoint_failover/job/status_line.hpp"

namespace ddp {

struct SupervisorOptions {
    int max_restarts = 3;
    double start_s = 30;    // a job that tells nothing for so long after its start has stopped,
    double silence_s = 60;  // and one that had begun to train, after so long
    double patience_s = 2;  // for a job that has failed to end by itself
};

// A report, and when it came: seconds since the supervisor began.
struct TimedReport {
    double time_s;
    Report report;
};

// One of the job's lives.
struct Attempt {
    std::vector<std::string> command;
    double begin_s = 0;
    double noticed_s = 0;  // that it has failed, or has done its work
    double end_s = 0;      // the last of its processes is gone
    int status = 0;
    std::string cause;  // the first complaint; "" if it has done its work
    std::vector<TimedReport> reports;

    // Whether any rank has told this.
    bool has(const std::string& what) const;
    // When the first report of this kind came, from the last rank to send one; 0 if none has.
    double time_of(const std::string& what) const;
    int last_step() const;  // that was reported
};

class Supervisor {
  public:
    // The job's next life: the command, which may differ from the last one's in how many ranks
    // there are; an empty one where nobody is left to run it.
    using NextCommand = std::function<std::vector<std::string>(const std::vector<Attempt>& before)>;
    // Called at least every 10 ms, for whoever wants to interfere.
    using Watch = std::function<void(SupervisedProcess& job, const Attempt& attempt, double now_s)>;

    Supervisor(SupervisorOptions options, NextCommand next_command, Watch watch = {});

    // Until the job has done its work; returns all of its lives. Throws std::runtime_error with the
    // first cause when it has failed max_restarts + 1 times, at once if it has refused its options
    // (exit status 2: they would be wrong again).
    std::vector<Attempt> run();

  private:
    Attempt attempt(std::vector<std::string> command);
    bool is_to_be_ended(Attempt& attempt, double now_s) const;
    void hear(const std::string& line, SupervisedProcess& job, Attempt& attempt);

    const SupervisorOptions options_;
    const NextCommand next_command_;
    const Watch watch_;
    const double start_s_;
    std::string host_;
    double heard_s_ = 0;
};

}  // namespace ddp
