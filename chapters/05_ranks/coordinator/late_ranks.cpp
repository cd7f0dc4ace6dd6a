// Ranks that do not come in time, and processes that say nothing.
#include <algorithm>
#include <utility>

#include "05_ranks/coordinator/coordinator.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

std::string seconds_between(Coordinator::Clock::time_point begin,
                            Coordinator::Clock::time_point end) {
    return format_fixed(std::chrono::duration<double>(end - begin).count(), 1) + " s";
}

// A process that runs sends 20 heartbeats in this time. One that sends none is probably stopped.
constexpr std::chrono::seconds usual_silence(1);

}  // namespace

void Coordinator::mark_lost(int rank, const std::string& how) {
    std::lock_guard lock(mutex_);
    RankState& state = ranks_[static_cast<std::size_t>(rank)];
    if (state.lost || state.left)
        return;
    state.lost = true;
    if (cause_.empty())
        awaited_ = rank;
    fail(rank, state.name + " " + how);
    finish_run();
}

void Coordinator::poll() {
    std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    // If this process was stopped, the others may have been as well: their silence begins now.
    if (now - std::exchange(polled_at_, now) > usual_silence)
        for (RankState& state : ranks_)
            state.message_at = now;
    if (cause_.empty())
        find_late_ranks(now);
    if (can_be_lost_)
        give_up_ranks(now);
}

// Fails the run if a rank has waited for too long, in a call or at the end of its part.
void Coordinator::find_late_ranks(Clock::time_point now) {
    const auto first = std::ranges::min_element(ranks_, {}, [](const RankState& state) {
        return state.waiting || state.ended ? state.waits_from : Clock::time_point::max();
    });
    const double limit_s = first->ended ? patience_s_ : timeout_s_;
    const std::chrono::duration<double> waited = now - first->waits_from;
    // A rank whose kernels wait as well knows more about the reason: it gets a little more time to
    // report it first.
    const double head_start_s = std::min(waited.count() / 11, 1.0);
    if ((!first->waiting && !first->ended) || limit_s == 0 ||
        waited.count() - head_start_s < limit_s)
        return;
    std::string cause = first->name;
    cause += first->ended ? " has ended its part of the run, and waited " : " waited ";
    cause += seconds_between(first->waits_from, now);
    cause += first->ended
                 ? " for " + missing_ranks("has not")
                 : " in " + describe_call(first->call) + " for " + missing_ranks("did not come");
    if (silent_ranks(now).empty())  // the late ranks are alive
        cause += ": if it is only slow, or the machine is busy, give a longer --timeout";
    for (RankState& state : ranks_)  // a stopped rank cannot end the run when it fails
        state.lost |= can_be_lost_ && state.is_awaited() && now - state.message_at > usual_silence;
    fail(static_cast<int>(first - ranks_.begin()), cause);
    finish_run();
}

// Gives up processes that say nothing any more, and those that do not end a failed run in time.
void Coordinator::give_up_ranks(Clock::time_point now) {
    const bool is_overdue = !cause_.empty() && is_late(failed_at_, now);
    bool gives_up_any = false;
    for (std::size_t r = 0; r < ranks_.size(); r++) {
        RankState& state = ranks_[r];
        const std::chrono::duration<double> silence = now - state.message_at;
        const bool is_silent = timeout_s_ > 0 && silence > usual_silence &&
                               silence.count() > longest_silence_s(timeout_s_);
        if (state.left || state.lost || !(is_silent || (is_overdue && !state.ended)))
            continue;
        state.lost = gives_up_any = true;
        if (is_silent)
            end_run_by(static_cast<int>(r), silent_ranks(now).substr(2));
    }
    if (gives_up_any)
        finish_run();
}

// Returns "rank 2, which did not come (its last call was barrier (call 2))" for each rank that the
// others wait for.
std::string Coordinator::missing_ranks(const std::string& what) const {
    std::string text;
    for (const RankState& state : ranks_) {
        if (!state.is_awaited())
            continue;
        text += (text.empty() ? "" : ", and ") + state.name + ", which " + what + " (";
        text += state.call.number == 0 || state.call.run_id != run_id_
                    ? "it has made no call yet"
                    : "its last call was " + describe_call(state.call);
        text += ")";
    }
    return text;
}

// Returns "; rank 2 has said nothing for 2.1 s: is it stopped?" for each rank whose silence may be
// the reason why the others waited for too long.
std::string Coordinator::silent_ranks(Clock::time_point now) const {
    std::string text;
    for (const RankState& state : ranks_)
        if (can_be_lost_ && !state.left && now - state.message_at > usual_silence &&
            is_late(state.message_at, now + (now - state.message_at) / 9))
            text += "; " + state.name + " has said nothing for " +
                    seconds_between(state.message_at, now) + ": is it stopped?";
    return text;
}

bool Coordinator::is_late(Clock::time_point since, Clock::time_point now) const {
    return timeout_s_ > 0 && now - since > std::chrono::duration<double>(timeout_s_);
}

}  // namespace ddp
