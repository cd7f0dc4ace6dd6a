#pragma once
// The coordinator of a job: it knows which rank is in which call, and which is not. All rules of a
// run are here, the same for threads and for processes:
//
// - The n-th call of every rank is the same operation. It is over when all ranks are in it, and
//   every rank then receives the contributions of all.
// - A rank that makes another call, or that has ended the run while others wait for it, is named at
//   once; a rank that does not come is named after the time-out. The time counts from the moment
//   that another rank begins to wait for it, in a call or at the end of the run: work of its own,
//   such as loading data, may take as long as it likes.
// - A process that sends nothing counts as stopped, whatever it was doing, and even if no rank
//   waits for it.
// - The first cause, by time, ends the run. It is sent to every rank, whatever the rank is doing.
// - A run is over when all ranks have ended it. All receive the same result.
#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "05_ranks/coordinator/message.hpp"

namespace ddp {

class Coordinator {
  public:
    using Clock = std::chrono::steady_clock;
    using Deliver = std::function<void(int rank, const Message&)>;

    // `names[r]` is what messages call rank r; there are as many ranks as names. `deliver` is
    // called with the coordinator's lock held: it must not call back, and must not wait for a rank.
    // `timeout_s` limits how long a rank is waited for in a call, and `patience_s` how long at the
    // end of a run; 0: no limit. Ranks that `can_be_lost` (processes) are given up if they say
    // nothing, or do not end a failed run, within `timeout_s`.
    Coordinator(std::vector<std::string> names, double timeout_s, double patience_s,
                bool can_be_lost, Deliver deliver);

    // Takes in a message of rank `rank`, and delivers what follows from it.
    void receive(int rank, const Message& message);

    // Gives up rank `rank`, from which no message will come any more. `how` continues the sentence
    // that begins with its name.
    void mark_lost(int rank, const std::string& how);

    // Finds ranks that are late. To be called about every 50 ms.
    void poll();

  private:
    struct RankState {
        std::string name;
        Message call;                  // the one it waits in; otherwise its last one
        Clock::time_point waits_from;  // when it made that call, or ended this run
        Clock::time_point message_at;  // when its last message came
        bool waiting = false;          // in a call
        bool ended = false;            // it has ended this run
        bool left = false;             // it takes part in no further run, as it announced
        bool lost = false;             // the same without an announcement

        bool is_awaited() const { return !waiting && !ended && !left && !lost; }
    };

    void on_call(int rank, const Message& message);
    std::string disagreement(int rank) const;
    void find_late_ranks(Clock::time_point now);
    void give_up_ranks(Clock::time_point now);
    std::string missing_ranks(const std::string& what) const;
    std::string silent_ranks(Clock::time_point now) const;
    void fail(int rank, const std::string& cause);
    void end_run_by(int rank, const std::string& cause);
    void finish_run();
    bool is_late(Clock::time_point since, Clock::time_point now) const;

    std::mutex mutex_;
    std::vector<RankState> ranks_;
    const double timeout_s_, patience_s_;
    const bool can_be_lost_;
    const Deliver deliver_;
    std::uint64_t run_id_ = 1;
    std::string cause_;  // of this run's failure; empty: none so far
    int awaited_ = -1;   // the rank whose loss is the cause, until another says how it waited
    Clock::time_point failed_at_;
    Clock::time_point polled_at_ = Clock::now();
};

// Returns the silence after which a process counts as stopped. It is a little longer than the
// time-out: a rank that waits for the process knows more about the reason, and is to report first.
inline double longest_silence_s(double timeout_s) {
    return timeout_s + std::min(timeout_s / 2, 1.0);
}

}  // namespace ddp
