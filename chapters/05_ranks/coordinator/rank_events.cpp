#include "05_ranks/coordinator/rank_events.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "05_ranks/coordinator/connection.hpp"

namespace ddp {

void RunFailed::wait_until_reported() const {
    constexpr int visible_ms = 5000, invisible_ms = 1000;
    const Descriptor process(reporter_ > 0 ? static_cast<int>(syscall(SYS_pidfd_open, reporter_, 0))
                                           : -1);
    if (reporter_ > 0 && process.number() < 0 && errno == ESRCH)  // it has ended
        return;
    pollfd end{process.number(), POLLIN, 0};
    poll(&end, 1, process.number() >= 0 ? visible_ms : invisible_ms);
}

// ---- From the coordinator

void RankEvents::post(const Message& message) {
    std::lock_guard lock(mutex_);
    if (message.kind == Message::Kind::gathered) {
        gathered_ = message.parts;
        has_gathered_ = true;
    }
    if (message.kind == Message::Kind::failed) {
        failures_.emplace(message.run_id, message.text);
        stop_abortables_locked();
    }
    if (message.kind == Message::Kind::result)
        results_[message.run_id] = RunResult::from(message);
    changed_.notify_all();
}

void RankEvents::close(const RunResult& result) {
    std::lock_guard lock(mutex_);
    if (closed_)
        return;
    closed_ = true;
    closing_result_ = result;
    stop_abortables_locked();
    changed_.notify_all();
}

bool RankEvents::is_closed() {
    std::lock_guard lock(mutex_);
    return closed_;
}

// ---- To the rank's own thread

void RankEvents::begin(std::uint64_t run_id) {
    std::lock_guard lock(mutex_);
    latest_result_ = {};
    wait_ = {};
    working_in_ = run_id;
    takes_sigterm_ = sigterm_has_come_ = false;
}

std::vector<std::string> RankEvents::wait_for_gathered(std::uint64_t run_id) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return has_gathered_ || !failure_locked(run_id).empty(); });
    if (!has_gathered_)
        throw RunFailed(failure_locked(run_id), true);
    has_gathered_ = false;
    return std::move(gathered_);
}

Wait RankEvents::last_wait() {
    std::lock_guard lock(mutex_);
    for (const Registered& each : abortables_)
        if (wait_.peer < 0)
            wait_ = each.abortable->wait_when_stopped();
    return wait_;
}

RunResult RankEvents::wait_for_result(std::uint64_t run_id) {
    std::unique_lock lock(mutex_);
    working_in_.reset();
    changed_.wait(lock, [&] { return results_.contains(run_id) || closed_; });
    RunResult result = results_.contains(run_id) ? results_[run_id] : closing_result_;
    if (!results_.contains(run_id) && wait_.peer == 0)  // the coordinator's rank is gone
        result.cause += wait_.sentence;
    std::erase_if(failures_, [&](const auto& entry) { return entry.first <= run_id; });
    std::erase_if(results_, [&](const auto& entry) { return entry.first <= run_id; });
    has_gathered_ = false;
    latest_result_ = result;
    return result;
}

std::string RankEvents::failure(std::uint64_t run_id) {
    std::lock_guard lock(mutex_);
    return failure_locked(run_id);
}

std::string RankEvents::failure_locked(std::uint64_t run_id) const {
    const auto found = failures_.find(run_id);
    if (found != failures_.end())
        return found->second;
    return closed_ ? closing_result_.cause : "";
}

RunFailed RankEvents::last_failure(int rank) {
    std::lock_guard lock(mutex_);
    if (!results_.empty())
        return {results_.rbegin()->second.cause, results_.rbegin()->second.reporter == rank};
    if (!latest_result_.cause.empty())
        return {latest_result_.cause, latest_result_.reporter == rank};
    if (closed_)
        return {closing_result_.cause, closing_result_.reporter == rank};
    return {failures_.empty() ? "" : failures_.rbegin()->second, rank == 0 && !failures_.empty()};
}

double RankEvents::seconds_overdue() {
    std::lock_guard lock(mutex_);
    if (!working_in_ || failure_locked(*working_in_).empty()) {
        overdue_from_.reset();
        return 0;
    }
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - overdue_from_.emplace(overdue_from_.value_or(now)))
        .count();
}

// ---- SIGTERM

void RankEvents::take_sigterm() {
    std::lock_guard lock(mutex_);
    takes_sigterm_ = true;
}

bool RankEvents::takes_sigterm() {
    std::lock_guard lock(mutex_);
    return takes_sigterm_;
}

// A run that has failed has nothing to save.
bool RankEvents::post_sigterm() {
    std::lock_guard lock(mutex_);
    const bool has_failed = !failures_.empty() || !latest_result_.cause.empty();
    sigterm_has_come_ |= takes_sigterm_ && !closed_;
    return sigterm_has_come_ && !has_failed;
}

bool RankEvents::sigterm_has_come() {
    std::lock_guard lock(mutex_);
    return sigterm_has_come_;
}

// ---- Work beside the rank's own thread

void RankEvents::add(Abortable& abortable, std::uint64_t run_id) {
    std::lock_guard lock(mutex_);
    abortables_.push_back({&abortable, run_id});
    if (!failure_locked(run_id).empty())
        abortable.stop();
}

void RankEvents::remove(Abortable& abortable) {
    std::lock_guard lock(mutex_);
    if (wait_.peer < 0)
        wait_ = abortable.wait_when_stopped();
    std::erase_if(abortables_,
                  [&](const Registered& each) { return each.abortable == &abortable; });
}

void RankEvents::stop_abortables_locked() {
    for (const Registered& each : abortables_)
        each.abortable->stop();
}

std::optional<Message> RankEvents::error() {
    std::lock_guard lock(mutex_);
    for (const Registered& each : abortables_)
        if (const std::string text = each.abortable->error(); !text.empty())
            return Message{Message::Kind::fail, each.run_id, 0, text, {}};
    return std::nullopt;
}

}  // namespace ddp
