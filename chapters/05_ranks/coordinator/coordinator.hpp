#pragma once
// The coordinator of a job: it knows which rank is in which call, and which is not. All rules of a
// run are here, the same for threads and for processes:
//
// - The n-th call of every rank is the same operation. It is over when all ranks are in it, and
//   every rank then receives the contributions of all.
// - A rank that makes another call, or that has ended the run while others wait for it, is named at
//   once; a rank that makes no call at all is named after the time-out.
// - The first cause, by time, ends the run. It is sent to every rank, whatever the rank is doing.
// - A run is over when all ranks have ended it. All receive the same result.
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
    // `timeout_s` limits how long a rank is waited for; 0: no limit. Ranks that `can_be_lost`
    // (processes) are given up if they do not end a failed run within that time.
    Coordinator(std::vector<std::string> names, double timeout_s, bool can_be_lost,
                Deliver deliver);

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
        Clock::time_point called_at;   // when it made that call
        Clock::time_point message_at;  // when its last message came
        bool waiting = false;          // in a call
        bool ended = false;            // it has ended this run
        bool left = false;             // it takes part in no further run, as it announced
        bool lost = false;             // the same without an announcement
    };

    void on_call(int rank, const Message& message);
    std::string disagreement(int rank) const;
    std::string missing_ranks() const;
    std::string silent_ranks(Clock::time_point now) const;
    void fail(int rank, const std::string& cause);
    void finish_run();
    bool is_late(Clock::time_point since, Clock::time_point now) const;

    std::mutex mutex_;
    std::vector<RankState> ranks_;
    const double timeout_s_;
    const bool can_be_lost_;
    const Deliver deliver_;
    std::uint64_t run_id_ = 1;
    std::string cause_;  // of this run's failure; empty: none so far
    Clock::time_point failed_at_;
};

}  // namespace ddp
