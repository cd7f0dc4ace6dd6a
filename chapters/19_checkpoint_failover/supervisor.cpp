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
//
// | event                          | noticed by                                                 |
// | a rank dies                    | the other ranks and the launcher, within milliseconds      |
// | a rank stops, or is cut off    | the other ranks, after --timeout                           |
// | all ranks or the launcher stop | this supervisor, when no line has come for twice --timeout |
// |                                | and for ten of the slowest steps                           |
#include "19_checkpoint_failover/supervisor.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <climits>
#include <csignal>
#include <set>
#include <sstream>

#include "common/report/process.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

// Returns the steady clock's time: only differences of it are used.
double clock_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// Open MPI explains a mistake in about a dozen lines.
constexpr std::size_t max_last_lines = 15;

std::string to_string(const std::vector<std::string>& lines) {
    std::string text = lines.empty() ? "" : "; the last lines that it printed:";
    for (const std::string& line : lines)
        text += "\n    " + line;
    return text;
}

// Returns whether this is a shell's exit status for a program that a signal has ended.
bool is_of_signal(int status) {
    return status > 128 && status <= 128 + SIGRTMAX;
}

// Returns whether another attempt would fail like the last: the options were refused, or the
// launcher has ended by itself, and no rank has ever started.
bool would_fail_again(const std::vector<Attempt>& attempts) {
    const Attempt& last = attempts.back();
    const bool has_started = std::ranges::any_of(
        attempts, [](const Attempt& attempt) { return attempt.has("started"); });
    return (last.status == 2 && last.says_why) || last.status == status_of_missing_program ||
           (!has_started && !last.says_why && !is_of_signal(last.status));
}

}  // namespace

bool Attempt::has(const std::string& what) const {
    return std::ranges::any_of(status_lines,
                               [&](const TimedStatus& each) { return each.status.what == what; });
}

double Attempt::time_of(const std::string& what) const {
    // Lines come in order of time, and each rank counts once: the last new rank has the time.
    double time_s = 0;
    std::set<int> ranks;
    for (const TimedStatus& each : status_lines)
        if (each.status.what == what && ranks.insert(each.status.rank).second)
            time_s = each.time_s;
    return time_s;
}

int Attempt::last_step() const {
    std::int64_t step = 0;
    for (const TimedStatus& each : status_lines)
        step = std::max(step, each.status.step);
    return static_cast<int>(step);
}

Supervisor::Supervisor(SupervisorOptions options, NextCommand next_command, Watch watch)
    : options_(options),
      next_command_(std::move(next_command)),
      watch_(std::move(watch)),
      start_s_(clock_s()) {
    // Only processes of this node can be signalled and waited for.
    char name[HOST_NAME_MAX + 1] = "";
    gethostname(name, sizeof name - 1);
    node_ = name;
}

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
    attempt.begin_s = last_line_s_ = now_s();
    // 1. Start. If this process dies, the job dies with it.
    SupervisedProcess job(std::move(command));
    const auto on_line = [&](const std::string& line) {
        last_line_s_ = now_s();
        read_line(line, job, attempt);
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
    // Exit status 0 means success, whatever was printed on the way.
    attempt.end_s = now_s();
    attempt.status = *job.status();
    attempt.was_told_to_end = job.was_asked_to_end() && attempt.status != 0;
    attempt.says_why = !attempt.cause.empty();
    if (attempt.status != 0 && !attempt.is_preempted() && attempt.cause.empty())
        attempt.cause = "the job ended with exit status " + std::to_string(attempt.status) +
                        " and without an error message" + to_string(attempt.last_lines);
    if (attempt.status == 0)
        attempt.cause.clear();
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
    if (now_s - last_line_s_ < limit_s)
        return false;
    attempt.cause =
        "no line has come from the job for " + format_seconds(limit_s) + ": it has stopped";
    return true;
}

// Notes how long a step has taken, on average, since the previous line about one.
void Supervisor::time_step(Attempt& attempt, const StatusLine& status) const {
    const std::int64_t steps = status.step - attempt.heard_step;
    const bool is_later = (status.what == "reached" || status.what == "step") && steps > 0;
    if (status.rank != 0 || !(is_later || status.what == "resumed"))
        return;
    if (is_later)
        attempt.slowest_step_s = std::max(
            attempt.slowest_step_s, (last_line_s_ - attempt.heard_s) / static_cast<double>(steps));
    attempt.heard_step = status.step;
    attempt.heard_s = last_line_s_;
}

void Supervisor::read_line(const std::string& line, SupervisedProcess& job, Attempt& attempt) {
    const double now_s = last_line_s_;
    // Later failures are often consequences: the first cause counts.
    const auto record_failure = [&](const std::string& cause) {
        if (attempt.noticed_s > 0)
            return;
        attempt.cause = cause;
        attempt.noticed_s = now_s;
    };
    if (const std::optional<StatusLine> status = StatusLine::from(line)) {
        attempt.status_lines.push_back({now_s, *status});
        time_step(attempt, *status);
        // A rank's process on this machine, whose launcher may die before it does.
        if (std::string node; status->what == "started") {
            pid_t process = 0;
            std::istringstream(status->value) >> node >> process;
            if (node == node_)
                job.adopt(process);
        }
        // A rank reports its own error at once, before its process ends.
        if (status->what == "failed")
            record_failure(status->value);
        return;
    }
    // All other lines are messages for a reader; errors of ranks and launchers begin so.
    for (const std::string sign : {"error: ", "launcher: "})
        if (line.starts_with(sign))
            record_failure(line.substr(sign.size()));
    if (line.starts_with("note: "))
        attempt.status_lines.push_back({now_s, {0, "note", 0, line.substr(6)}});
    else if (std::ranges::any_of(line, [](unsigned char c) { return std::isalnum(c) != 0; }))
        attempt.last_lines.push_back(line);
    if (attempt.last_lines.size() > max_last_lines)
        attempt.last_lines.erase(attempt.last_lines.begin());
}

}  // namespace ddp
