#pragma once
// Measuring: a stopwatch, and variants taken in turn so that a machine that slows down slows all of
// them.
#include <chrono>
#include <functional>
#include <span>
#include <vector>

namespace ddp {

// Runs from its construction, on the clock that never jumps.
class Stopwatch {
  public:
    double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
    void restart() { start_ = Clock::now(); }

  private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point start_ = Clock::now();
};

// One run of something; returns what was measured, for example seconds between two events of a
// stream.
using Measurement = std::function<double()>;

// Measures what `work` takes on the host's clock. Work on a stream must synchronise before it
// returns.
Measurement timed(std::function<void()> work);

// Runs all variants once per round, in turn, and starts each round with the next variant, so that
// none always follows the same one. `warm_up` rounds come first and are thrown away. Returns one
// row of `rounds` samples per variant; samples [a][i] and [b][i] are of the same round (see
// median_ratio). The order depends on the arguments only: ranks that call this together stay
// together. Throws std::invalid_argument if there is nothing to run or a number of rounds makes no
// sense.
std::vector<std::vector<double>> interleave(std::span<const Measurement> variants, int warm_up,
                                            int rounds);

}  // namespace ddp
