// The exercise staleness_gate: no worker runs too far ahead. Read exercises/13_async/README.md
// first.
#include "exercises/13_async/staleness_gate.hpp"

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <vector>

namespace ddp {
namespace {

//: Several threads call at once: what protects the numbers that they all read and write?
class Gate : public WaitingGate {
  public:
    Gate(int workers, int bound) : bound_(bound), done_(static_cast<std::size_t>(workers)) {}

    bool begin_step(int worker, std::chrono::milliseconds patience) override {
        // stub: bound
        //: wait_for of a std::condition_variable takes a time-out and a condition.
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, patience, [&] {
            return done_[static_cast<std::size_t>(worker)] - slowest() <= bound_;
        });
        // end stub
    }

    void end_step(int worker) override {
        // stub: bound
        //: Which workers may be waiting for this?
        const std::lock_guard lock(mutex_);
        done_[static_cast<std::size_t>(worker)]++;
        changed_.notify_all();
        // end stub
    }

    void leave(int worker) override {
        // stub: leaving
        //: Which workers may be waiting for this one?
        const std::lock_guard lock(mutex_);
        done_[static_cast<std::size_t>(worker)] = ahead_of_all;
        changed_.notify_all();
        // end stub
    }

  private:
    // stub
    // The steps of a worker that has left: it is never the slowest.
    static constexpr int ahead_of_all = std::numeric_limits<int>::max();

    // The worker that calls has not left, so there is a slowest one.
    int slowest() const { return *std::ranges::min_element(done_); }

    std::mutex mutex_;
    std::condition_variable changed_;
    // end stub
    const int bound_;
    std::vector<int> done_;  // steps, by worker
};

}  // namespace

std::unique_ptr<WaitingGate> make_staleness_gate(int workers, int bound) {
    return std::make_unique<Gate>(workers, bound);
}

}  // namespace ddp
