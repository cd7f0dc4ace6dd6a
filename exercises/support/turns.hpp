#pragma once
// Calls of a run's ranks, one after the other: for contracts that say that the host does not wait,
// and so not for other ranks' hosts either.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

#include "exercises/support/tasks.hpp"

namespace ddp::test {

// Belongs to all ranks of a run, each of which is a thread.
class Turns {
  public:
    // Calls `call` when the calls of all ranks before this one have returned, or after two seconds.
    // Returns what is wrong if they had not returned by then, or "".
    std::string take(int rank, const std::function<void()>& call) {
        std::unique_lock lock(mutex_);
        const bool is_in_time = changed_.wait_for(lock, std::chrono::seconds(2),
                                                  [&] { return returned_ >= rank || is_late_; });
        is_late_ = is_late_ || !is_in_time;
        const std::string wrong =
            !is_late_ ? ""
                      : "the function that rank " + std::to_string(returned_) +
                            " has called does not return before the next rank calls it. By the "
                            "contract the host does not wait, and so not for the other ranks: is "
                            "there a barrier() or an all_gather() of the Rank, or a stream of your "
                            "own that you wait for? Launch on the one that you were given." +
                            may_be_busy;
        changed_.notify_all();
        lock.unlock();
        call();
        lock.lock();
        returned_++;
        changed_.notify_all();
        return wrong;
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int returned_ = 0;  // calls
    bool is_late_ = false;
};

}  // namespace ddp::test
