#pragma once
// Limits where ranks that mpirun or srun has started wait for each other outside a run: MPI's calls
// have none, and nothing can interrupt them; and mpirun waits for a stopped process forever.
#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "05_ranks/support/interfaces.hpp"
#include "05_ranks/support/silent_nodes.hpp"

namespace ddp {

// Gives this rank's line to ranks that ask, over the launcher's network, and returns the lines of
// the ranks that have given theirs within a second or so.
using AskRanks = std::function<std::vector<std::string>(const std::string& mine)>;

class MpiLimit {
  public:
    // Ends this process, with one sentence that names `call`, if this object lives for longer than
    // `limit_s` and a rank of this node is stopped, or for longer than `longest_s` whatever the
    // reason. 0: no limit. With `ask`, which may be called in a thread that nothing waits for, the
    // sentence says which nodes do not answer, and why (silent_nodes.hpp).
    MpiLimit(std::string call, double limit_s, double longest_s, AskRanks ask = nullptr);
    ~MpiLimit();
    MpiLimit(const MpiLimit&) = delete;
    MpiLimit& operator=(const MpiLimit&) = delete;

  private:
    void watch(const std::string& call, double limit_s, double longest_s);
    void ask_others(int rank, const std::string& stopped);

    const AskRanks ask_;
    const SentBytes sent_before_;
    std::shared_future<Silence> silence_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_over_ = false;
    std::thread thread_;
};

// Waits until these processes of this node have ended, for `limit_s` at most. Ends this process,
// with one sentence, if one of them is stopped then: mpirun ends the others. 0: does not wait.
void wait_until_ended(const std::vector<pid_t>& processes, double limit_s);

}  // namespace ddp
