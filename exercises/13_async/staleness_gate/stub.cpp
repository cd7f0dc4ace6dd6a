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

// Several threads call at once: what protects the numbers that they all read and write?
class Gate : public WaitingGate {
  public:
    Gate(int workers, int bound) : bound_(bound), done_(static_cast<std::size_t>(workers)) {}

    bool begin_step(int worker, std::chrono::milliseconds patience) override {
        // wait_for of a std::condition_variable takes a time-out and a condition.
        throw NotImplemented("bound");
    }

    void end_step(int worker) override {
        // Which workers may be waiting for this?
        throw NotImplemented("bound");
    }

    void leave(int worker) override {
        // Which workers may be waiting for this one?
        throw NotImplemented("leaving");
    }

  private:
    const int bound_;
    std::vector<int> done_;  // steps, by worker
};

}  // namespace

std::unique_ptr<WaitingGate> make_staleness_gate(int workers, int bound) {
    return std::make_unique<Gate>(workers, bound);
}

}  // namespace ddp
