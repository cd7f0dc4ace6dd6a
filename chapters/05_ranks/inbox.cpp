#include "05_ranks/inbox.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "05_ranks/rendezvous.hpp"

namespace ddp {

void RunFailed::wait_until_told() const {
    constexpr int seen_ms = 5000, unseen_ms = 1000;
    const Descriptor process(teller_ > 0 ? static_cast<int>(syscall(SYS_pidfd_open, teller_, 0))
                                         : -1);
    if (teller_ > 0 && process.number() < 0 && errno == ESRCH)
        return;
    pollfd end{process.number(), POLLIN, 0};
    poll(&end, 1, process.number() >= 0 ? seen_ms : unseen_ms);
}

void Inbox::put(const Message& message) {
    std::lock_guard lock(mutex_);
    if (message.kind == Message::Kind::gathered) {
        gathered_ = message.parts;
        has_gathered_ = true;
    }
    if (message.kind == Message::Kind::failed) {
        failures_.emplace(message.epoch, message.text);
        for (const Guard& guard : guards_)
            guard.guarded->stop();
    }
    if (message.kind == Message::Kind::verdict)
        verdicts_[message.epoch] = Verdict::from(message);
    changed_.notify_all();
}

void Inbox::close(const Verdict& verdict) {
    std::lock_guard lock(mutex_);
    if (closed_)
        return;
    closed_ = true;
    last_ = verdict;
    for (const Guard& guard : guards_)
        guard.guarded->stop();
    changed_.notify_all();
}

bool Inbox::is_closed() {
    std::lock_guard lock(mutex_);
    return closed_;
}

void Inbox::begin() {
    std::lock_guard lock(mutex_);
    taken_ = {};
}

std::vector<std::string> Inbox::wait_for_gathered(std::uint64_t epoch) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return has_gathered_ || !failure_locked(epoch).empty(); });
    if (!has_gathered_)
        throw RunFailed(failure_locked(epoch), true);
    has_gathered_ = false;
    return std::move(gathered_);
}

Verdict Inbox::wait_for_verdict(std::uint64_t epoch) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return verdicts_.contains(epoch) || closed_; });
    const Verdict verdict = verdicts_.contains(epoch) ? verdicts_[epoch] : last_;
    std::erase_if(failures_, [&](const auto& entry) { return entry.first <= epoch; });
    std::erase_if(verdicts_, [&](const auto& entry) { return entry.first <= epoch; });
    has_gathered_ = false;
    taken_ = verdict;
    return verdict;
}

std::string Inbox::failure(std::uint64_t epoch) {
    std::lock_guard lock(mutex_);
    return failure_locked(epoch);
}

std::string Inbox::failure_locked(std::uint64_t epoch) const {
    const auto found = failures_.find(epoch);
    if (found != failures_.end())
        return found->second;
    return closed_ ? last_.cause : "";
}

RunFailed Inbox::last_failure(int rank) {
    std::lock_guard lock(mutex_);
    if (!verdicts_.empty())
        return {verdicts_.rbegin()->second.cause, verdicts_.rbegin()->second.reporter == rank};
    if (!taken_.cause.empty())
        return {taken_.cause, taken_.reporter == rank};
    if (closed_)
        return {last_.cause, last_.reporter == rank};
    return {failures_.empty() ? "" : failures_.rbegin()->second, rank == 0 && !failures_.empty()};
}

void Inbox::add(Guarded& guarded, std::uint64_t epoch) {
    std::lock_guard lock(mutex_);
    guards_.push_back({&guarded, epoch});
    if (!failure_locked(epoch).empty())
        guarded.stop();
}

void Inbox::remove(Guarded& guarded) {
    std::lock_guard lock(mutex_);
    std::erase_if(guards_, [&](const Guard& guard) { return guard.guarded == &guarded; });
}

std::optional<Message> Inbox::complaint() {
    std::lock_guard lock(mutex_);
    for (const Guard& guard : guards_)
        if (const std::string text = guard.guarded->complaint(); !text.empty())
            return Message{Message::Kind::fail, guard.epoch, 0, text, {}};
    return std::nullopt;
}

}  // namespace ddp
