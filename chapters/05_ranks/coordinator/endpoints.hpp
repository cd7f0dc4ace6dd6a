#pragma once
// The two ways in which a process takes part in the meeting of its job: it holds the meeting (the
// one process of a job of threads, and rank 0's), or it is connected to the process that does.
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "05_ranks/coordinator/coordinator.hpp"
#include "05_ranks/coordinator/rank_events.hpp"
#include "05_ranks/coordinator/watchdog.hpp"
#include "05_ranks/rank.hpp"
#include "05_ranks/rendezvous.hpp"

namespace ddp {

class CoordinatorEndpoint : public ControlChannel {
  public:
    explicit CoordinatorEndpoint(const Job& job);

    // Of a rank of this process.
    virtual RankEvents& events(int rank) = 0;

  protected:
    using Clock = std::chrono::steady_clock;

    // The watchdog's work that both have in common, for each rank of this process.
    void poll_rank(int rank);
    // True every 50 ms: time to say that this process is alive. (Not whenever there is something to
    // look at: two processes would keep each other awake.)
    bool is_heartbeat_due();
    // A signal is something to look at, too.
    std::vector<int> with_signal(std::vector<int> descriptors) const;

    // The watchdog's last work, in a process that is rank `rank`; nothing among threads. (mpirun
    // tells all to end when one rank has died: which one, the connections have said by then.)
    void poll_sigterm(int rank);

    const Job& job_;

  private:
    std::optional<Sigterm> sigterm_;  // of processes; threads have nobody to explain it to
    std::optional<Clock::time_point> told_to_end_;
    Clock::time_point heartbeat_;
    Clock::time_point last_look_ = Clock::now();
    Clock::time_point awake_since_;  // since this process was last stopped
};

// Holds the meeting. `connections[r]` leads to rank r; ranks without one are threads of this
// process.
class CoordinatorServer final : public CoordinatorEndpoint {
  public:
    CoordinatorServer(const Job& job, Connections connections);
    ~CoordinatorServer() override;

    void send(int rank, const Message& message) override { coordinator_.receive(rank, message); }
    RankEvents& events(int rank) override { return events_[static_cast<std::size_t>(rank)]; }

  private:
    // What a process has said since the last look, and whether it then went without a word.
    struct Received {
        int rank;
        std::vector<Message> messages;
        bool is_lost = false;
    };
    void deliver(int rank, const Message& message);
    std::vector<int> descriptors() const;
    void poll();
    Received receive_from(int rank, bool heartbeat);

    std::vector<RankEvents> events_;
    Connections connections_;
    std::vector<bool> silenced_;  // the watchdog's: nothing more comes from this rank
    Coordinator coordinator_;
    Watchdog watchdog_;
};

// Rank `rank`, connected to the process that holds the meeting.
class CoordinatorClient final : public CoordinatorEndpoint {
  public:
    CoordinatorClient(const Job& job, int rank, std::unique_ptr<Connection> connection);
    ~CoordinatorClient() override;

    void send(int rank, const Message& message) override;
    RankEvents& events(int) override { return events_; }

  private:
    std::vector<int> descriptors() const;
    void poll();
    void close(const std::string& how);
    void record_error(const std::string& text);
    std::string take_error();

    const int rank_;
    RankEvents events_;
    std::unique_ptr<Connection> connection_;
    bool closed_ = false;                     // the watchdog's
    Clock::time_point heard_ = Clock::now();  // the watchdog's
    std::mutex mutex_;
    std::string error_;  // what this rank has told the meeting of what is wrong in this run
    Watchdog watchdog_;
};

}  // namespace ddp
