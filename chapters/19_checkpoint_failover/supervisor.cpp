//     attempt 0   start -> ranks train ------- X fault
//                                              |- noticed ------------- all ended -|
//     attempt 1                                                                    start -> resume
//
// The supervisor's loop, for each attempt:
//     1. start     the job, with the command for the nodes that are there now
//     2. watch     read its lines; a failure is an error line, an exit, or silence
//     3. end       all of its processes, running or not; wait until the last one is gone
//     4. decide    done, or told to end: return. Refused options, or too many restarts: give up.
//                  Else: start again
#include "19_checkpoint_failover/supervisor.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "common/report/process.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

// Returns the steady clock's time: only differences of it are used.
double clock_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace

Supervisor::Supervisor(SupervisorOptions options, NextCommand next_command, Watch watch)
    : options_(options),
      next_command_(std::move(next_command)),
      watch_(std::move(watch)),
      start_s_(clock_s()) {}

// Makes one attempt after another. Each loads the last checkpoint of those before.
std::vector<Attempt> Supervisor::run() {
    std::vector<Attempt> attempts;
    for (;;) {
        std::vector<std::string> command = next_command_(attempts);
        if (command.empty())
            throw std::runtime_error("no node is left to run the job; its first failure was: " +
                                     (attempts.empty() ? "none" : attempts[0].cause));
        attempts.push_back(attempt(std::move(command)));
        // 4. Decide: return, give up, or start again.
        const Attempt& last = attempts.back();
        if (last.cause.empty() || last.is_preempted())
            return attempts;
        if (would_fail_again(attempts))
            throw std::runtime_error(last.cause);
        if (static_cast<int>(attempts.size()) > options_.max_restarts)
            throw std::runtime_error(
                "the job has failed " + format_count(static_cast<int>(attempts.size()), "time") +
                ", and --max-restarts is " + std::to_string(options_.max_restarts) +
                "; the first cause was: " + attempts[0].cause);
    }
}

// Starts the job once, and returns when its last process is gone.
Attempt Supervisor::attempt(std::vector<std::string> command) {
    const auto now_s = [this] { return clock_s() - start_s_; };
    Attempt attempt;
    attempt.command = command;
    attempt.begin_s = attempt.last_line_s = now_s();
    // 1. Start. If this process dies, the job dies with it.
    SupervisedProcess job(std::move(command));
    const auto on_line = [&](const std::string& line) {
        attempt.read_line(line, now_s());
        // A rank's process on this machine, whose launcher may die before it does.
        if (const auto status = StatusLine::from(line); status && status->what == "started")
            if (const pid_t process = attempt.process_of(status->rank, host_name()); process != 0)
                job.adopt(process);
    };
    // 2. Watch, until the job has ended by itself or must be ended.
    while (!job.status() && !is_to_be_ended(attempt, now_s())) {
        job.read_lines(on_line);
        if (watch_)
            watch_(job, attempt, now_s());
    }
    if (attempt.noticed_s == 0)
        attempt.noticed_s = now_s();
    // 3. End. A process that was stopped would otherwise wake up later and write its checkpoint.
    job.end(job.status() ? 0.0 : options_.patience_s, on_line);
    attempt.end(*job.status(), job.was_asked_to_end(), now_s());
    return attempt;
}

// Returns whether the supervisor must end the job now: a failed job gets `patience_s` to end by
// itself; a silent job has failed, and is ended at once.
bool Supervisor::is_to_be_ended(Attempt& attempt, double now_s) const {
    if (attempt.noticed_s > 0)
        return now_s - attempt.noticed_s > options_.patience_s;
    // Before the first step a job may load data for long without a line. A job whose steps are
    // slow, because of one slow link for example, has not stopped.
    const double limit_s = std::max(attempt.has("step") ? options_.silence_s : options_.start_s,
                                    10 * attempt.slowest_step_s);
    if (now_s - attempt.last_line_s < limit_s)
        return false;
    attempt.cause =
        "no line has come from the job for " + format_seconds(limit_s) + ": it has stopped";
    return true;
}

}  // namespace ddp
