#pragma once
// The two ways in which a process takes part in the meeting of its job: it holds the meeting (the
// one process of a job of threads, and rank 0's), or it is connected to the process that does.
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "05_ranks/inbox.hpp"
#include "05_ranks/meeting.hpp"
#include "05_ranks/rank.hpp"
#include "05_ranks/rendezvous.hpp"
#include "05_ranks/watchdog.hpp"

namespace ddp {

class Attendance : public Messenger {
  public:
    explicit Attendance(const Job& job);

    // Of a rank of this process.
    virtual Inbox& inbox(int rank) = 0;

  protected:
    using Clock = std::chrono::steady_clock;

    // The watchdog's work that both have in common, for each rank of this process.
    void look_after(int rank);
    // True every 50 ms: time to say that this process is alive. (Not whenever there is something to
    // look at: two processes would keep each other awake.)
    bool is_heartbeat_due();
    // A signal is something to look at, too.
    std::vector<int> with_signal(std::vector<int> descriptors) const;

    // The watchdog's last work, in a process that is rank `rank`; nothing among threads. (mpirun
    // tells all to end when one rank has died: which one, the connections have said by then.)
    void look_for_sigterm(int rank);

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
class MeetingHost final : public Attendance {
  public:
    MeetingHost(const Job& job, Connections connections);
    ~MeetingHost() override;

    void say(int rank, const Message& message) override { meeting_.take(rank, message); }
    Inbox& inbox(int rank) override { return inboxes_[static_cast<std::size_t>(rank)]; }

  private:
    // What a process has said since the last look, and whether it then went without a word.
    struct Heard {
        int rank;
        std::vector<Message> messages;
        bool is_lost = false;
    };
    void deliver(int rank, const Message& message);
    std::vector<int> descriptors() const;
    void look();
    Heard listen_to(int rank, bool heartbeat);

    std::vector<Inbox> inboxes_;
    Connections connections_;
    std::vector<bool> silenced_;  // the watchdog's: nothing more comes from this rank
    Meeting meeting_;
    Watchdog watchdog_;
};

// Rank `rank`, connected to the process that holds the meeting.
class MeetingGuest final : public Attendance {
  public:
    MeetingGuest(const Job& job, int rank, std::unique_ptr<Connection> connection);
    ~MeetingGuest() override;

    void say(int rank, const Message& message) override;
    Inbox& inbox(int) override { return inbox_; }

  private:
    std::vector<int> descriptors() const;
    void look();
    void close(const std::string& how);
    void complain(const std::string& text);
    std::string take_complaint();

    const int rank_;
    Inbox inbox_;
    std::unique_ptr<Connection> connection_;
    bool closed_ = false;                     // the watchdog's
    Clock::time_point heard_ = Clock::now();  // the watchdog's
    std::mutex mutex_;
    std::string complaint_;  // what this rank has told the meeting of what is wrong in this run
    Watchdog watchdog_;
};

}  // namespace ddp
