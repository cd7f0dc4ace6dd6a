#pragma once
// Measuring: a stopwatch, and variants that run in turn, so that a machine that slows down slows
// all of them.
#include <chrono>
#include <functional>
#include <span>
#include <vector>

namespace ddp {

// A stopwatch that runs from its construction, on the clock that never jumps.
class Stopwatch {
  public:
    double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
    void restart() { start_ = Clock::now(); }

  private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point start_ = Clock::now();
};

// A function that runs something once and returns a number, for example the seconds between two
// events of a stream.
using Measurement = std::function<double()>;

// Returns a measurement of `work`, in seconds of the host's clock. Work on a stream must
// synchronise the stream before it returns.
Measurement timed(std::function<void()> work);

// Runs all variants once per round, in turn. Each round starts with the next variant, so that none
// always comes first. The first `warm_up` rounds are discarded. Returns one row of `rounds` samples
// per variant; samples [a][i] and [b][i] are of the same round (see median_ratio). The order
// depends only on the arguments, so ranks that all call this run the same variants at the same
// time. Throws std::invalid_argument if there is nothing to run, `warm_up` is negative or `rounds`
// is below 1.
std::vector<std::vector<double>> interleave(std::span<const Measurement> variants, int warm_up,
                                            int rounds);

}  // namespace ddp
