#pragma once
// Who had the core while a kernel ran: what the system has counted of a stream's thread, noted at
// the end of each kernel. On a CPU, in a process that has one rank.
#include <time.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ddp {

// The counts of a stream's thread, between two moments or from its beginning on.
struct ThreadUse {
    std::int64_t clock_ns = 0;
    std::int64_t own_ns = 0;   // in which it has had the core
    std::int64_t host_ns = 0;  // in which the rank's host thread has had it
    std::int64_t sleeps = 0;   // how often it has given the core back, to wait
    std::int64_t page_faults = 0;
};

// Notes the counts at the end of each kernel of this process, the first `most` of them. The thread
// that makes it is the host thread, and there is one such object at a time. Throws OptionError on a
// GPU, whose kernels are no threads.
class KernelEnds {
  public:
    explicit KernelEnds(std::size_t most);
    ~KernelEnds();
    KernelEnds(const KernelEnds&) = delete;
    KernelEnds& operator=(const KernelEnds&) = delete;

    // Forgets what was noted. No kernel may run meanwhile, nor in the next call.
    void restart() { used_ = 0; }
    // Returns what was used from each end to the next.
    std::vector<ThreadUse> between() const;

  private:
    void note();

    clockid_t host_{};
    std::vector<ThreadUse> ends_;
    std::size_t used_ = 0;
};

}  // namespace ddp
