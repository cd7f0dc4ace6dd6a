#pragma once
// Who may begin another step? A server lets its workers through here, one step at a time.
#include <optional>
#include <vector>

namespace ddp {

class StalenessGate {
  public:
    // For workers 1 to `workers`, who are to do `steps` steps in all. Nobody begins a step that is
    // more than `bound` steps ahead of the slowest worker's; without a bound everyone goes on.
    // Throws std::invalid_argument for no workers or negative numbers.
    StalenessGate(int workers, std::optional<int> bound, int steps);
    virtual ~StalenessGate() = default;

    // A worker has done a step, and comes back.
    void arrive(int worker);

    struct Pass {
        int worker;
        bool goes_on;  // or there is nothing left to do
    };
    // Those who need not wait any longer, by number; they go.
    std::vector<Pass> let_through();

    // Of all steps that were begun: how far ahead of the slowest worker's.
    int most_ahead() const { return most_ahead_; }
    int done_by(int worker) const { return done_[static_cast<std::size_t>(worker) - 1]; }

  protected:
    // Worker `worker` has done so many more steps than the slowest one.
    virtual bool may_begin(int ahead) const { return !bound_ || ahead <= *bound_; }

    const std::optional<int> bound_;

  private:
    int ahead_of_slowest(int worker) const;

    int left_;  // steps that nobody has begun
    int most_ahead_ = 0;
    std::vector<int> done_;      // steps, by worker
    std::vector<bool> waiting_;  // at the turnstile, by worker
};

}  // namespace ddp
