#pragma once
// A limit for calls of MPI that wait for all ranks: MPI has none, and nothing can interrupt them.
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace ddp {

class MpiLimit {
  public:
    // Ends this process, with one sentence that names `call`, if this object lives for longer than
    // `limit_s` and a rank of this host is stopped, or for longer than `longest_s` whatever the
    // reason. 0: no limit.
    MpiLimit(std::string call, double limit_s, double longest_s);
    ~MpiLimit();
    MpiLimit(const MpiLimit&) = delete;
    MpiLimit& operator=(const MpiLimit&) = delete;

  private:
    void watch(const std::string& call, double limit_s, double longest_s);

    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_over_ = false;
    std::thread thread_;
};

// Returns "rank 2 (process 4711)", a process that has the same parent as this one and is stopped;
// "" if there is none.
std::string find_stopped_rank();

}  // namespace ddp
