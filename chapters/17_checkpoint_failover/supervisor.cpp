#include "17_checkpoint_failover/supervisor.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <set>
#include <sstream>

#include "common/report/units.hpp"

namespace ddp {
namespace {

double clock_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace

bool Attempt::has(const std::string& what) const {
    return std::ranges::any_of(reports,
                               [&](const TimedReport& each) { return each.report.what == what; });
}

double Attempt::time_of(const std::string& what) const {
    double time_s = 0;
    std::set<int> ranks;
    for (const TimedReport& each : reports)
        if (each.report.what == what && ranks.insert(each.report.rank).second)
            time_s = each.time_s;
    return time_s;
}

int Attempt::last_step() const {
    std::int64_t step = 0;
    for (const TimedReport& each : reports)
        step = std::max(step, each.report.step);
    return static_cast<int>(step);
}

Supervisor::Supervisor(SupervisorOptions options, NextCommand next_command, Watch watch)
    : options_(options),
      next_command_(std::move(next_command)),
      watch_(std::move(watch)),
      start_s_(clock_s()) {
    char name[HOST_NAME_MAX + 1] = "";
    gethostname(name, sizeof name - 1);
    host_ = name;
}

std::vector<Attempt> Supervisor::run() {
    std::vector<Attempt> attempts;
    for (;;) {
        std::vector<std::string> command = next_command_(attempts);
        if (command.empty())
            throw std::runtime_error("nobody is left to run the job; its first failure was: " +
                                     (attempts.empty() ? "none" : attempts[0].cause));
        attempts.push_back(attempt(std::move(command)));
        const Attempt& last = attempts.back();
        if (last.cause.empty())
            return attempts;
        if (last.status == 2)
            throw std::runtime_error(last.cause);
        if (static_cast<int>(attempts.size()) > options_.max_restarts)
            throw std::runtime_error("the job has failed " + std::to_string(attempts.size()) +
                                     " times, and --max-restarts is " +
                                     std::to_string(options_.max_restarts) +
                                     "; the first cause was: " + attempts[0].cause);
    }
}

Attempt Supervisor::attempt(std::vector<std::string> command) {
    const auto now_s = [this] { return clock_s() - start_s_; };
    Attempt attempt;
    attempt.command = command;
    attempt.begin_s = heard_s_ = now_s();
    SupervisedProcess job(std::move(command));
    const auto on_line = [&](const std::string& line) {
        heard_s_ = now_s();
        hear(line, job, attempt);
    };
    while (!job.status() && !is_to_be_ended(attempt, now_s())) {
        job.attend(on_line);
        if (watch_)
            watch_(job, attempt, now_s());
    }
    if (attempt.noticed_s == 0)
        attempt.noticed_s = now_s();
    job.end(job.status() ? 0.0 : options_.patience_s, on_line);
    attempt.end_s = now_s();
    attempt.status = *job.status();
    if (attempt.status != 0 && attempt.cause.empty())
        attempt.cause = "the job has ended with exit status " + std::to_string(attempt.status) +
                        " and has not said why";
    if (attempt.status == 0)
        attempt.cause.clear();
    return attempt;
}

// A job that has failed ends by itself, or it is helped to. One that is silent has failed, too.
bool Supervisor::is_to_be_ended(Attempt& attempt, double now_s) const {
    if (attempt.noticed_s > 0)
        return now_s - attempt.noticed_s > options_.patience_s;
    const double limit_s = attempt.has("step") ? options_.silence_s : options_.start_s;
    if (now_s - heard_s_ < limit_s)
        return false;
    attempt.cause =
        "the job has told nothing for " + format_seconds(limit_s) + ": something in it has stopped";
    return true;
}

void Supervisor::hear(const std::string& line, SupervisedProcess& job, Attempt& attempt) {
    const double now_s = heard_s_;
    const auto complain = [&](const std::string& cause) {
        if (attempt.noticed_s > 0)  // the first one counts
            return;
        attempt.cause = cause;
        attempt.noticed_s = now_s;
    };
    if (const std::optional<Report> report = Report::from(line)) {
        attempt.reports.push_back({now_s, *report});
        if (std::string host; report->what == "met") {
            pid_t process = 0;
            std::istringstream(report->value) >> host >> process;
            if (host == host_)
                job.adopt(process);
        }
        if (report->what == "failed")
            complain(report->value);
        return;
    }
    for (const std::string sign : {"error: ", "launcher: "})
        if (line.starts_with(sign))
            complain(line.substr(sign.size()));
    if (line.starts_with("note: "))
        attempt.reports.push_back({now_s, {0, "note", 0, line.substr(6)}});
}

}  // namespace ddp
