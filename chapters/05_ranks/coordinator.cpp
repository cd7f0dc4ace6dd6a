// The coordinator's answers, to a call that all ranks make and to the first failure of one:
//
//     rank 0  ── barrier (call 3) ──┐                     rank 0  ── barrier (call 4) ──┐
//     rank 1  ── barrier (call 3) ──┤ all are in it       rank 1  ── "no memory" ───────┤ failed
//     both  ◀── go on ──────────────┘                     both  ◀── "no memory" ────────┘
//
// A rank that can never be answered fails the run at once: disagreement() finds it. Ranks that come
// late, or that say nothing, are found in coordinator/late_ranks.cpp.
#include "05_ranks/coordinator/coordinator.hpp"

#include <algorithm>
#include <utility>

namespace ddp {

Coordinator::Coordinator(std::vector<std::string> names, double timeout_s, double patience_s,
                         bool can_be_lost, Deliver deliver)
    : timeout_s_(timeout_s),
      patience_s_(patience_s),
      can_be_lost_(can_be_lost),
      deliver_(std::move(deliver)) {
    for (std::string& name : names) {
        RankState& state = ranks_.emplace_back();
        state.name = std::move(name);
        state.message_at = Clock::now();
    }
}

void Coordinator::receive(int rank, const Message& message) {
    std::lock_guard lock(mutex_);
    RankState& state = ranks_[static_cast<std::size_t>(rank)];
    state.message_at = Clock::now();
    if (state.lost)  // it was given up: its messages come too late
        return;
    if (message.kind == Message::Kind::goodbye)  // needs no answer
        state.left = true;
    if (message.run_id != run_id_ && message.run_id != 0)  // of a run that is over
        return;
    if (message.kind == Message::Kind::call && cause_.empty())  // not after a failure
        on_call(rank, message);
    if (message.kind == Message::Kind::fail)  // a kernel, or another thread, has failed
        fail(rank, message.text);
    if (message.kind == Message::Kind::end) {  // text: what the rank has thrown, if it has
        state.ended = true;
        state.waiting = false;
        state.waits_from = Clock::now();  // the others must end it, too
        fail(rank, message.text.empty() ? disagreement(rank) : message.text);
        if (std::cmp_equal(message.number, awaited_)) {  // it waited for the lost rank
            cause_ += message.parts.at(0);
            awaited_ = -1;
        }
        finish_run();
    }
}

// Keeps what the rank brings to a call. The last rank to come completes it: all get the answer.
void Coordinator::on_call(int rank, const Message& message) {
    RankState& state = ranks_[static_cast<std::size_t>(rank)];
    state.call = message;
    state.waits_from = Clock::now();
    state.waiting = true;
    fail(rank, disagreement(rank));
    if (!std::ranges::all_of(ranks_, &RankState::waiting))  // no answer yet: they wait
        return;
    // The answer has the contributions of all, in the order of the ranks.
    Message gathered{Message::Kind::gathered, run_id_, message.number, message.text, {}};
    for (RankState& each : ranks_) {
        each.waiting = false;
        gathered.parts.push_back(std::move(each.call.parts.at(0)));
    }
    for (std::size_t r = 0; r < ranks_.size(); r++)
        deliver_(static_cast<int>(r), gathered);
}

// Returns why `rank` and the ranks that wait can never come together; "" if they can.
std::string Coordinator::disagreement(int rank) const {
    const RankState& state = ranks_[static_cast<std::size_t>(rank)];
    for (const RankState& other : ranks_) {
        const RankState& waiting = state.waiting ? state : other;
        const RankState& awaited = state.waiting ? other : state;
        if (&other == &state || !waiting.waiting)
            continue;
        // Both wait, in different calls.
        if (awaited.waiting &&
            (awaited.call.text != waiting.call.text || awaited.call.number != waiting.call.number))
            return other.name + " is in " + describe_call(other.call) + ", but " + state.name +
                   " is in " + describe_call(state.call) +
                   ": all ranks must make the same calls in the same order";
        // One waits for a rank that makes no further call.
        if (awaited.ended || awaited.left)
            return waiting.name + " waits in " + describe_call(waiting.call) + " for " +
                   awaited.name + ", which has " +
                   (awaited.ended ? "ended its part of the run" : "left") +
                   ": all ranks must make the same calls";
    }
    return "";
}

// Ends the run for this cause, unless there is none. A silent rank may be the reason behind it.
void Coordinator::fail(int rank, const std::string& cause) {
    if (!cause.empty())
        end_run_by(rank, cause + silent_ranks(Clock::now()));
}

// Tells all ranks that the run has failed. Only the first cause counts.
void Coordinator::end_run_by(int rank, const std::string& cause) {
    if (!cause_.empty())  // the run has failed already
        return;
    failed_at_ = Clock::now();
    cause_ = cause;
    const Message failed{
        Message::Kind::failed, run_id_, static_cast<std::uint64_t>(rank), cause_, {}};
    for (std::size_t r = 0; r < ranks_.size(); r++) {
        ranks_[r].waiting = false;               // this is its answer
        if (!ranks_[r].lost && !ranks_[r].left)  // can still hear it
            deliver_(static_cast<int>(r), failed);
    }
}

// Delivers the result once every rank has ended the run or is gone, and prepares the next run.
void Coordinator::finish_run() {
    const auto is_done = [](const RankState& state) {
        return state.ended || state.lost || state.left;
    };
    if (!std::ranges::all_of(ranks_, is_done))  // the last one to end the run comes here again
        return;
    RunResult result;
    result.cause = cause_;
    result.is_last = std::ranges::any_of(ranks_, &RankState::lost);
    const auto first_left = std::ranges::find(ranks_, false, &RankState::lost);
    // If all ranks are given up, rank 0 reports: this coordinator runs in its process.
    result.reporter =
        first_left == ranks_.end() ? 0 : static_cast<int>(first_left - ranks_.begin());
    const Message message = result.to_message(run_id_);
    run_id_++;  // what still comes for the old run is ignored
    cause_.clear();
    for (std::size_t r = 0; r < ranks_.size(); r++) {
        ranks_[r].ended = false;
        if (!ranks_[r].left)  // a lost one may be only stopped: when it goes on, it must not report
            deliver_(static_cast<int>(r), message);
    }
}

}  // namespace ddp
