#pragma once
// A rank's two directions: it sends to the coordinator by a ControlChannel, and what the
// coordinator sends back arrives in its RankEvents.
#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "05_ranks/coordinator/message.hpp"

namespace ddp {

// A run has failed. The text is the first cause, the same on every rank.
class RunFailed : public std::runtime_error {
  public:
    // `reporter` is the process that prints the cause, if it is on this node; otherwise 0. It
    // `stays_visible` if the others find out by its number that it is left.
    RunFailed(const std::string& cause, bool is_reported_here, pid_t reporter = 0,
              bool stays_visible = false)
        : std::runtime_error(cause),
          is_reported_here_(is_reported_here),
          reporter_(reporter),
          stays_visible_(stays_visible) {}

    // Returns whether this process prints the cause: one does, that of the lowest rank left.
    bool is_reported_here() const { return is_reported_here_; }
    // Returns whether that process, when it has printed, must wait until the others have seen it.
    bool stays_visible() const { return stays_visible_; }
    // Waits, in another process, until the one that prints the cause has ended: for 5 s at most,
    // and for 1 s if it runs on another node.
    void wait_until_reported() const;

  private:
    bool is_reported_here_;
    pid_t reporter_;
    bool stays_visible_;
};

// A wait for rank `peer`, and the sentence that tells of it. -1: there was none.
struct Wait {
    int peer = -1;
    std::string sentence;
};

// Work that goes on beside the rank's own thread (kernels that wait for a peer, a thread inside
// another library) and must not outlive a failure. The watchdog polls it.
class Abortable {
  public:
    virtual ~Abortable() = default;
    // Ends every wait of this work at once, since the run has failed. Any thread may call it, more
    // than once.
    virtual void stop() noexcept = 0;
    // Returns what has failed in this work, of which the rank's own thread may not know; "" if
    // nothing has.
    virtual std::string error() = 0;
    // Returns what this work waited for when it was stopped, if it knows that.
    virtual Wait wait_when_stopped() { return {}; }
};

class ControlChannel {
  public:
    virtual ~ControlChannel() = default;
    // Sends a message of rank `rank` to the coordinator. Never throws: if the connection is gone,
    // that rank's events are closed.
    virtual void send(int rank, const Message& message) = 0;
};

// All that reaches one rank from the coordinator. Any thread may call any function.
class RankEvents {
  public:
    // Takes in a message of the coordinator: `gathered`, `failed` or `result`.
    void post(const Message& message);
    // No message will come any more: `result` stands for every run from now on.
    void close(const RunResult& result);
    bool is_closed();

    // Forgets how the last run ended: run `run_id` begins.
    void begin(std::uint64_t run_id);
    // Waits until the call that the rank has made is over, and returns all ranks' contributions.
    // Throws RunFailed if the run fails instead.
    std::vector<std::string> wait_for_gathered(std::uint64_t run_id);
    // Returns the wait of the rank's work when the run failed.
    Wait last_wait();
    // Waits until every rank has ended the run, and returns its result.
    RunResult wait_for_result(std::uint64_t run_id);

    // Returns the first cause of the failure of run `run_id`; "" if it has not failed.
    std::string failure(std::uint64_t run_id);
    // Returns the last failure that reached rank `rank`, which may not be reported yet.
    RunFailed last_failure(int rank);
    // Returns for how many seconds the run has failed and the rank, which is still at work in it,
    // has not come back; 0 if it has. To be asked again and again.
    double seconds_overdue();

    // Takes SIGTERM as a request: from now on, until the next run begins, it ends no process.
    void take_sigterm();
    bool takes_sigterm();
    // Notes that SIGTERM has come. Returns whether the rank takes it, in a run that has not failed.
    bool post_sigterm();
    // Returns whether the rank has taken one.
    bool sigterm_has_come();

    // Registers `abortable`, to be stopped when run `run_id` fails: at once, if it has failed.
    // remove() must be called before its end.
    void add(Abortable& abortable, std::uint64_t run_id);
    void remove(Abortable& abortable);
    // Returns the first error of a registered Abortable, as a `fail` for the coordinator.
    std::optional<Message> error();

  private:
    std::string failure_locked(std::uint64_t run_id) const;
    void stop_abortables_locked();

    struct Registered {
        Abortable* abortable;
        std::uint64_t run_id;
    };

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> gathered_;
    bool has_gathered_ = false;
    std::map<std::uint64_t, std::string> failures_;  // by run_id; entries end with their run
    std::map<std::uint64_t, RunResult> results_;     // the same
    RunResult latest_result_;                        // of the last run that is over
    std::optional<std::uint64_t> working_in_;        // the run in which the rank is at work
    std::optional<std::chrono::steady_clock::time_point> overdue_from_;
    bool closed_ = false;
    bool takes_sigterm_ = false, sigterm_has_come_ = false;
    Wait wait_;  // when the run failed
    RunResult closing_result_;
    std::vector<Registered> abortables_;
};

}  // namespace ddp
