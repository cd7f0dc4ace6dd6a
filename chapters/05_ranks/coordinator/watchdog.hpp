#pragma once
// The one thread of a process that looks after its ranks while they compute or wait.
#include <functional>
#include <thread>
#include <vector>

#include "05_ranks/rendezvous.hpp"

namespace ddp {

class Watchdog {
  public:
    // Calls `look` every 50 ms, and at once when one of `descriptors` (asked for each time; -1s are
    // passed over) has something to read.
    Watchdog(std::function<std::vector<int>()> descriptors, std::function<void()> look);
    ~Watchdog();
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

  private:
    void watch(const std::function<std::vector<int>()>& descriptors,
               const std::function<void()>& look) const;

    Descriptor ended_;  // becomes readable when the thread is to end
    std::thread thread_;
};

// Takes the place of SIGTERM's sudden death, by which mpirun, Slurm and our launcher end a process:
// there is time to say why. If it goes because of an exception, the signal stays blocked: what the
// exception says has yet to be told.
class Sigterm {
  public:
    Sigterm();
    ~Sigterm();
    Sigterm(const Sigterm&) = delete;
    Sigterm& operator=(const Sigterm&) = delete;

    int descriptor() const { return signals_.number(); }
    // Whether it has come, once for each time.
    bool has_come() const;
    // Lets the signal do what it does.
    [[noreturn]] void obey() const;

  private:
    Descriptor signals_;
};

}  // namespace ddp
