#pragma once
// Limits where ranks that mpirun or srun has started wait for each other outside a run: MPI's calls
// have none, and nothing can interrupt them; and mpirun waits for a stopped process for ever.
#include <sys/types.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

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

// Waits until these processes of this host have ended, for `limit_s` at most. Ends this process,
// with one sentence, if one of them is stopped then: mpirun ends the others. 0: does not wait.
void wait_until_ended(const std::vector<pid_t>& processes, double limit_s);

}  // namespace ddp
