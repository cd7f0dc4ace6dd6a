#pragma once
// What one rank hears, and what must know of it at once.
#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "05_ranks/coordinator/coordinator.hpp"
#include "05_ranks/coordinator/message.hpp"

namespace ddp {

// A run has failed. The text is the first cause, the same on every rank.
class RunFailed : public std::runtime_error {
  public:
    // `teller` is the process that tells, if it is on this host.
    RunFailed(const std::string& cause, bool tell, pid_t teller = 0)
        : std::runtime_error(cause), tell_(tell), teller_(teller) {}

    // Whether this process is the one that tells the reader: the lowest rank that is left does.
    bool is_to_be_told_here() const { return tell_; }
    // In a process that does not: until the one that does has ended, 5 s at most; 1 s where it
    // cannot be seen.
    void wait_until_told() const;

  private:
    bool tell_;
    pid_t teller_;
};

// Something that goes on beside the rank's own thread (kernels that wait for a peer, a thread that
// talks to another library) and that must not outlive a failure. The watchdog looks after it.
class Abortable {
  public:
    virtual ~Abortable() = default;
    // The run has failed: end every wait, now. Called by any thread, once or more.
    virtual void stop() noexcept = 0;
    // What has gone wrong there, of which the rank's own thread may not know; "" if nothing has.
    virtual std::string error() = 0;
};

class RankEvents {
  public:
    // Called by whoever delivers.
    void post(const Message& message);
    // All will hear nothing more: `verdict` stands for every run from now on.
    void close(const RunResult& result);
    bool is_closed();

    // A run begins: how the one before it has ended is no longer news.
    void begin();
    // Until the call that the rank has made is over. Throws RunFailed when the run has failed.
    std::vector<std::string> wait_for_gathered(std::uint64_t run_id);
    // Until the run is over on every rank.
    RunResult wait_for_result(std::uint64_t run_id);

    // The first cause of run `run_id`, or "".
    std::string failure(std::uint64_t run_id);
    // What is known of the last failure, by a rank whose own thread has not yet told it.
    RunFailed last_failure(int rank);

    // `guarded` is looked after until it is removed; one that comes after the failure of the run is
    // stopped at once.
    void add(Abortable& abortable, std::uint64_t run_id);
    void remove(Abortable& abortable);
    // The first of their complaints, as what the rank says to the meeting.
    std::optional<Message> error();

  private:
    std::string failure_locked(std::uint64_t run_id) const;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> gathered_;
    bool has_gathered_ = false;
    std::map<std::uint64_t, std::string> failures_;  // by run_id; entries end with their run
    std::map<std::uint64_t, RunResult> results_;
    RunResult taken_;  // of the last run that is over
    bool closed_ = false;
    RunResult last_;
    struct Watched {
        Abortable* abortable;
        std::uint64_t run_id;
    };
    std::vector<Watched> abortables_;
};

}  // namespace ddp
