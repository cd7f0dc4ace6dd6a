#pragma once
// Decides which workers may begin another step. The server lets its workers through here, one step
// at a time.
#include <optional>
#include <vector>

namespace ddp {

class StalenessGate {
  public:
    // For workers 1 to `workers`, which do `steps` steps in all. At first every worker waits at the
    // gate. No worker begins a step while it is more than `bound` steps ahead of the slowest;
    // without a bound no worker is held back. Throws std::invalid_argument if there is no worker,
    // or if `bound` or `steps` is negative.
    StalenessGate(int workers, std::optional<int> bound, int steps);
    virtual ~StalenessGate() = default;

    // Records that `worker` has finished its step and waits at the gate. Throws std::logic_error if
    // it waits there already.
    void arrive(int worker);

    struct Pass {
        int worker;
        bool goes_on;  // false: no step is left, and the worker can stop
    };
    // Lets every waiting worker through that may now go on. Returns them in ascending order.
    std::vector<Pass> let_through();

    // Returns the largest lead over the slowest worker with which a step has begun so far.
    int max_ahead() const { return max_ahead_; }
    // Returns the number of steps that `worker` has finished.
    int done_by(int worker) const { return done_[static_cast<std::size_t>(worker) - 1]; }

  protected:
    // Returns whether a worker may begin that has done `ahead` more steps than the slowest.
    // (Virtual, so that the tests can make mistakes here.)
    virtual bool may_begin(int ahead) const { return !bound_ || ahead <= *bound_; }

    const std::optional<int> bound_;

  private:
    int ahead_of_slowest(int worker) const;

    int left_;  // steps that no worker has begun
    int max_ahead_ = 0;
    std::vector<int> done_;      // finished steps, by worker
    std::vector<bool> waiting_;  // at the gate, by worker
};

}  // namespace ddp
