#pragma once
// Decides which workers can begin another step. The server lets its workers through here, one step
// at a time.
#include <optional>
#include <vector>

namespace ddp {

class StalenessGate {
  public:
    // For workers 1 to `workers`, which do `steps` steps in all. At first every worker waits at the
    // gate. No worker begins a step while it is more than `bound` steps ahead of the slowest;
    // without a bound all go on. Throws std::invalid_argument if there is no worker, or if `bound`
    // or `steps` is negative.
    StalenessGate(int workers, std::optional<int> bound, int steps);

    // Records that `worker` has finished its step and waits at the gate. Throws std::logic_error if
    // it waits there already.
    void arrive(int worker);

    struct Pass {
        int worker;
        bool goes_on;  // false: no step is left, and the worker can stop
    };
    // Lets every waiting worker through that can now go on. Returns them in ascending order.
    std::vector<Pass> let_through();

    // Returns the largest lead over the slowest worker with which a step has begun so far.
    int max_ahead() const { return max_ahead_; }

  private:
    // Returns whether a worker can begin that has done `ahead` more steps than the slowest.
    bool may_begin(int ahead) const { return !bound_ || ahead <= *bound_; }

    const std::optional<int> bound_;
    int left_;  // steps that no worker has begun
    int max_ahead_ = 0;
    std::vector<int> done_;      // finished steps, by worker
    std::vector<bool> waiting_;  // at the gate, by worker
};

}  // namespace ddp
