#pragma once
// Where the ranks of a job meet: it knows who came to which call, and who did not. All rules of a
// run stand here, the same for threads and for processes:
//
// - The n-th call of every rank is the same operation. It is over when all ranks have come, and
//   each then hears what every rank brought.
// - A rank that calls something else, or that has ended its part while others wait for it, is
//   named at once; one that does not come, after the time-out.
// - The first cause, by time, ends the run. Every rank is told, whatever it is doing.
// - A run is over when all ranks have ended it. All hear the same verdict.
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
    // called with the meeting's lock held: it must not call back, and must not wait for a rank.
    // `timeout_s`: how long a rank may be awaited; 0: for ever. Ranks that `can_be_lost`
    // (processes) are given up when they do not end a failed run within that time.
    Coordinator(std::vector<std::string> names, double timeout_s, bool can_be_lost,
                Deliver deliver);

    // What rank `rank` says: hears it, and delivers what follows from it.
    void receive(int rank, const Message& message);

    // Rank `rank` will never say anything again. `how` continues the sentence that its name begins.
    void mark_lost(int rank, const std::string& how);

    // To be called every now and then: finds those who do not come.
    void poll();

  private:
    struct RankState {
        std::string name;
        Message call;             // the one it waits in; else its last one
        Clock::time_point since;  // when it came there
        Clock::time_point heard;  // when it last said anything
        bool waiting = false;     // in a call
        bool ended = false;       // its part of this run
        bool left = false;        // for good, as it should: its program goes on without the others
        bool lost = false;        // for good, as it should not
    };

    void on_call(int rank, const Message& message);
    std::string disagreement(int rank) const;
    std::string missing() const;
    std::string silent(Clock::time_point now) const;
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
    Clock::time_point failed_;
};

// The end of a run, as every rank hears it.
struct RunResult {
    std::string cause;     // empty: all went well
    int reporter = 0;      // the lowest rank that is left: it tells the reader
    bool is_last = false;  // a rank is lost: no further run is possible

    static RunResult from(const Message& message);
    Message to_message(std::uint64_t run_id) const;
};

}  // namespace ddp
