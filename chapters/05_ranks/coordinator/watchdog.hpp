#pragma once
// The thread of a process that polls for failures while its ranks compute or wait.
#include <functional>
#include <thread>
#include <vector>

#include "05_ranks/coordinator/connection.hpp"

namespace ddp {

class Watchdog {
  public:
    // Starts a thread that calls `poll` every 50 ms, and at once when one of `descriptors` (asked
    // for each time; -1 is skipped) has something to read.
    Watchdog(std::function<std::vector<int>()> descriptors, std::function<void()> poll);
    // Ends the thread, after the current call of `poll`.
    ~Watchdog();
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

  private:
    void watch(const std::function<std::vector<int>()>& descriptors,
               const std::function<void()>& poll) const;

    Descriptor ended_;  // becomes readable when the thread is to end
    std::thread thread_;
};

// Catches SIGTERM, by which mpirun, Slurm and our launcher end a process, so that there is time to
// report why. If an exception destroys this object, the signal stays blocked: the exception's text
// has yet to be printed.
class Sigterm {
  public:
    Sigterm();
    ~Sigterm();
    Sigterm(const Sigterm&) = delete;
    Sigterm& operator=(const Sigterm&) = delete;

    int descriptor() const { return signals_.number(); }
    // Returns whether the signal has come since the last call.
    bool has_come() const;
    // Ends this process by the signal.
    [[noreturn]] void obey() const;

  private:
    Descriptor signals_;
};

}  // namespace ddp
