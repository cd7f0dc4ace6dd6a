#pragma once
// One start of a job, until its last process has ended: what the supervisor learns from the lines
// that the job prints.
#include <sys/types.h>

#include <string>
#include <vector>

#include "19_checkpoint_failover/job/status_line.hpp"

namespace ddp {

// A status line and the time at which it came, in seconds since the supervisor began.
struct TimedStatus {
    double time_s;
    StatusLine status;
};

// Times are in seconds since the supervisor began.
struct Attempt {
    std::vector<std::string> command;
    double begin_s = 0;
    double noticed_s = 0;  // its failure, or its success, was noticed
    double end_s = 0;      // the last of its processes has ended
    int status = 0;        // exit status
    std::string cause;     // the first error; "" if it has done its work. None if it is_preempted()
    std::vector<TimedStatus> status_lines;
    std::vector<std::string> last_lines;  // of messages that are not ours: mpirun's, for example
    double last_line_s = 0;               // when the job's last line came
    // The steps that rank 0 has reported.
    std::int64_t heard_step = 0;
    double heard_s = 0;            // when the line came
    double slowest_step_s = 0;     // 0: no step yet
    bool was_told_to_end = false;  // by this supervisor
    bool says_why = false;         // a rank or our launcher gave the cause, or the job was silent

    // Notes a line that the job has printed.
    void read_line(const std::string& line, double now_s);
    // Notes the job's end. Exit status 0 means success, whatever was printed on the way.
    void end(int exit_status, bool was_asked_to_end, double now_s);

    // Returns whether it has ended because it was told to.
    bool is_preempted() const;
    // Returns whether any rank has sent a line of this kind.
    bool has(const std::string& what) const;
    // Returns when the last of the ranks sent its first line of this kind; 0 if no rank has.
    double time_of(const std::string& what) const;
    // Returns when the job was back at this step, or when it ended if it was not.
    double time_of_step(int step) const;
    // Returns the largest step of any status line.
    int last_step() const;
    // Returns the step of the first line of this kind; 0 if there is none.
    int step_at(const std::string& what) const;
    // Returns the number of ranks that have sent a line.
    int ranks() const;
    // Returns the process of a rank; 0 while it is not known, or if it is on another node than
    // `node`, if that is given.
    pid_t process_of(int rank, const std::string& node = "") const;

  private:
    void time_step(const StatusLine& status);
};

// Returns whether another attempt would fail like the last: the options were refused, or the
// launcher has ended by itself, and no rank has ever started.
bool would_fail_again(const std::vector<Attempt>& attempts);

}  // namespace ddp
