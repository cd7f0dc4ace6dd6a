#include "05_ranks/coordinator/coordinator.hpp"

#include <algorithm>

#include "common/report/units.hpp"

namespace ddp {
namespace {

std::string seconds_between(Coordinator::Clock::time_point begin,
                            Coordinator::Clock::time_point end) {
    return format_fixed(std::chrono::duration<double>(end - begin).count(), 1) + " s";
}

// "barrier (call 3)".
std::string text_of_call(const Message& call) {
    return call.text + " (call " + std::to_string(call.number) + ")";
}

// A process's watchdog says that it is alive 20 times in this time; a stopped one does not.
constexpr std::chrono::seconds silence(1);

}  // namespace

Coordinator::Coordinator(std::vector<std::string> names, double timeout_s, bool can_be_lost,
                         Deliver deliver)
    : timeout_s_(timeout_s), can_be_lost_(can_be_lost), deliver_(std::move(deliver)) {
    for (std::string& name : names) {
        RankState& state = ranks_.emplace_back();
        state.name = std::move(name);
        state.heard = Clock::now();
    }
}

void Coordinator::receive(int rank, const Message& message) {
    std::lock_guard lock(mutex_);
    RankState& state = ranks_[static_cast<std::size_t>(rank)];
    state.heard = Clock::now();
    if (state.lost)  // it comes back too late: the others have gone on without it
        return;
    if (message.kind == Message::Kind::goodbye)
        state.left = true;
    if (message.run_id != run_id_ && message.run_id != 0)
        return;
    if (message.kind == Message::Kind::call && cause_.empty())
        on_call(rank, message);
    if (message.kind == Message::Kind::fail)
        fail(rank, message.text);
    if (message.kind == Message::Kind::end) {
        state.ended = true;
        state.waiting = false;
        fail(rank, message.text.empty() ? disagreement(rank) : message.text);
        finish_run();
    }
}

void Coordinator::on_call(int rank, const Message& message) {
    RankState& state = ranks_[static_cast<std::size_t>(rank)];
    state.call = message;
    state.since = Clock::now();
    state.waiting = true;
    fail(rank, disagreement(rank));
    if (!std::ranges::all_of(ranks_, &RankState::waiting))
        return;
    Message gathered{Message::Kind::gathered, run_id_, message.number, message.text, {}};
    for (RankState& each : ranks_) {
        each.waiting = false;
        gathered.parts.push_back(std::move(each.call.parts.at(0)));
    }
    for (std::size_t r = 0; r < ranks_.size(); r++)
        deliver_(static_cast<int>(r), gathered);
}

// Where `rank` is now cannot be where the others are: why, or "".
std::string Coordinator::disagreement(int rank) const {
    const RankState& state = ranks_[static_cast<std::size_t>(rank)];
    for (const RankState& other : ranks_) {
        const RankState& waiting = state.waiting ? state : other;
        const RankState& there = state.waiting ? other : state;
        if (&other == &state || !waiting.waiting)
            continue;
        if (there.waiting &&
            (there.call.text != waiting.call.text || there.call.number != waiting.call.number))
            return other.name + " is in " + text_of_call(other.call) + ", but " + state.name +
                   " is in " + text_of_call(state.call) +
                   ": all ranks must make the same calls in the same order";
        if (there.ended || there.left)
            return waiting.name + " waits in " + text_of_call(waiting.call) + " for " + there.name +
                   ", which has " + (there.ended ? "ended its part of the run" : "left") +
                   ": all ranks must make the same calls";
    }
    return "";
}

void Coordinator::fail(int rank, const std::string& cause) {
    if (cause.empty() || !cause_.empty())
        return;
    failed_ = Clock::now();
    cause_ = cause + silent(failed_);
    const Message failed{
        Message::Kind::failed, run_id_, static_cast<std::uint64_t>(rank), cause_, {}};
    for (std::size_t r = 0; r < ranks_.size(); r++) {
        ranks_[r].waiting = false;
        if (!ranks_[r].lost && !ranks_[r].left)
            deliver_(static_cast<int>(r), failed);
    }
}

void Coordinator::mark_lost(int rank, const std::string& how) {
    std::lock_guard lock(mutex_);
    RankState& state = ranks_[static_cast<std::size_t>(rank)];
    if (state.lost || state.left)
        return;
    state.lost = true;
    fail(rank, state.name + " " + how);
    finish_run();
}

void Coordinator::poll() {
    std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    const auto first = std::ranges::min_element(ranks_, {}, [](const RankState& state) {
        return state.waiting ? state.since : Clock::time_point::max();
    });
    // A rank whose kernels wait, too, knows more of why, and may speak first.
    const auto head_start = (now - first->since) / 11;
    if (first->waiting && is_late(first->since, now - head_start)) {
        const std::string cause = first->name + " waited " + seconds_between(first->since, now) +
                                  " in " + text_of_call(first->call) + " for " + missing();
        for (RankState& state :
             ranks_)  // one that is stopped will not hear that the run has failed
            state.lost |= can_be_lost_ && !state.waiting && now - state.heard > silence;
        fail(static_cast<int>(first - ranks_.begin()), cause);
        finish_run();
    }
    if (can_be_lost_ && !cause_.empty() && is_late(failed_, now)) {
        for (RankState& state : ranks_)
            state.lost |= !state.ended;
        finish_run();
    }
}

// "rank 2, which did not come (its last call was barrier, call 2)", of all that are not there.
std::string Coordinator::missing() const {
    std::string text;
    for (const RankState& state : ranks_) {
        if (state.waiting)
            continue;
        text += (text.empty() ? "" : ", and ") + state.name + ", which did not come (";
        text += state.call.number == 0 || state.call.run_id != run_id_
                    ? "it has made no call yet"
                    : "its last call was " + text_of_call(state.call);
        text += ")";
    }
    return text;
}

// "; rank 2 has said nothing for 2.1 s: is it stopped?", of all for which the others may have
// waited in vain.
std::string Coordinator::silent(Clock::time_point now) const {
    std::string text;
    for (const RankState& state : ranks_)
        if (can_be_lost_ && !state.left && now - state.heard > silence &&
            is_late(state.heard, now + (now - state.heard) / 9))
            text += "; " + state.name + " has said nothing for " +
                    seconds_between(state.heard, now) + ": is it stopped?";
    return text;
}

bool Coordinator::is_late(Clock::time_point since, Clock::time_point now) const {
    return timeout_s_ > 0 && now - since > std::chrono::duration<double>(timeout_s_);
}

// The verdict, once every rank has ended the run or is lost.
void Coordinator::finish_run() {
    const auto is_done = [](const RankState& state) {
        return state.ended || state.lost || state.left;
    };
    if (!std::ranges::all_of(ranks_, is_done))
        return;
    RunResult result;
    result.cause = cause_;
    result.is_last = std::ranges::any_of(ranks_, &RankState::lost);
    const auto first_left = std::ranges::find(ranks_, false, &RankState::lost);
    // If all are given up, rank 0 still lives: this meeting is in its process.
    result.reporter =
        first_left == ranks_.end() ? 0 : static_cast<int>(first_left - ranks_.begin());
    const Message message = result.to_message(run_id_);
    run_id_++;
    cause_.clear();
    for (std::size_t r = 0; r < ranks_.size(); r++) {
        ranks_[r].ended = false;
        if (!ranks_[r].left)  // one that is lost may be awakened, and must know that all is told
            deliver_(static_cast<int>(r), message);
    }
}

RunResult RunResult::from(const Message& message) {
    return {message.text, static_cast<int>(message.number), !message.parts.empty()};
}

Message RunResult::to_message(std::uint64_t run_id) const {
    Message message{Message::Kind::result, run_id, static_cast<std::uint64_t>(reporter), cause, {}};
    if (is_last)
        message.parts.push_back("a rank is lost");
    return message;
}

}  // namespace ddp
