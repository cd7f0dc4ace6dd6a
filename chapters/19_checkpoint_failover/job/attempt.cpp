#include "19_checkpoint_failover/job/attempt.hpp"

#include <algorithm>
#include <cctype>
#include <csignal>
#include <set>
#include <sstream>

#include "19_checkpoint_failover/job/preemption.hpp"
#include "common/report/process.hpp"

namespace ddp {
namespace {

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

}  // namespace

void Attempt::read_line(const std::string& line, double now_s) {
    last_line_s = now_s;
    // Later failures are often consequences: the first cause counts.
    const auto record_failure = [&](const std::string& why) {
        if (noticed_s > 0)
            return;
        cause = why;
        noticed_s = now_s;
    };
    if (const std::optional<StatusLine> heard = StatusLine::from(line)) {
        status_lines.push_back({now_s, *heard});
        time_step(*heard);
        // A rank reports its own error at once, before its process ends.
        if (heard->what == "failed")
            record_failure(heard->value);
        return;
    }
    // All other lines are messages for a reader; errors of ranks and launchers begin so.
    for (const std::string sign : {"error: ", "launcher: "})
        if (line.starts_with(sign))
            record_failure(line.substr(sign.size()));
    if (line.starts_with("note: "))
        status_lines.push_back({now_s, {0, "note", 0, line.substr(6)}});
    else if (std::ranges::any_of(line, [](unsigned char c) { return std::isalnum(c) != 0; }))
        last_lines.push_back(line);
    if (last_lines.size() > max_last_lines)
        last_lines.erase(last_lines.begin());
}

// Notes how long a step has taken, on average, since the previous line about one.
void Attempt::time_step(const StatusLine& heard) {
    const std::int64_t steps = heard.step - heard_step;
    const bool is_later = (heard.what == "reached" || heard.what == "step") && steps > 0;
    if (heard.rank != 0 || !(is_later || heard.what == "resumed"))
        return;
    if (is_later)
        slowest_step_s =
            std::max(slowest_step_s, (last_line_s - heard_s) / static_cast<double>(steps));
    heard_step = heard.step;
    heard_s = last_line_s;
}

void Attempt::end(int exit_status, bool was_asked_to_end, double now_s) {
    end_s = now_s;
    status = exit_status;
    was_told_to_end = was_asked_to_end && status != 0;
    says_why = !cause.empty();
    if (status != 0 && !is_preempted() && cause.empty())
        cause = "the job ended with exit status " + std::to_string(status) +
                " and without an error message" + to_string(last_lines);
    if (status == 0)
        cause.clear();
}

bool Attempt::is_preempted() const {
    return was_told_to_end || status == status_of_preemption;
}

bool Attempt::has(const std::string& what) const {
    return std::ranges::any_of(status_lines,
                               [&](const TimedStatus& each) { return each.status.what == what; });
}

double Attempt::time_of(const std::string& what) const {
    // Lines come in order of time, and each rank counts once: the last new rank has the time.
    double time_s = 0;
    std::set<int> heard;
    for (const TimedStatus& each : status_lines)
        if (each.status.what == what && heard.insert(each.status.rank).second)
            time_s = each.time_s;
    return time_s;
}

double Attempt::time_of_step(int step) const {
    for (const TimedStatus& each : status_lines)
        if (each.status.what != "started" && each.status.step >= step)
            return each.time_s;
    return end_s;
}

int Attempt::last_step() const {
    std::int64_t step = 0;
    for (const TimedStatus& each : status_lines)
        step = std::max(step, each.status.step);
    return static_cast<int>(step);
}

int Attempt::step_at(const std::string& what) const {
    for (const TimedStatus& each : status_lines)
        if (each.status.what == what)
            return static_cast<int>(each.status.step);
    return 0;
}

int Attempt::ranks() const {
    int ranks = 0;
    for (const TimedStatus& each : status_lines)
        ranks = std::max(ranks, each.status.rank + 1);
    return ranks;
}

pid_t Attempt::process_of(int rank, const std::string& node) const {
    for (const TimedStatus& each : status_lines)
        if (each.status.what == "started" && each.status.rank == rank) {
            std::string name;
            pid_t process = 0;
            std::istringstream(each.status.value) >> name >> process;
            return node.empty() || name == node ? process : 0;
        }
    return 0;
}

bool would_fail_again(const std::vector<Attempt>& attempts) {
    const Attempt& last = attempts.back();
    const bool has_started = std::ranges::any_of(
        attempts, [](const Attempt& attempt) { return attempt.has("started"); });
    return (last.status == 2 && last.says_why) || last.status == status_of_missing_program ||
           (!has_started && !last.says_why && !is_of_signal(last.status));
}

}  // namespace ddp
