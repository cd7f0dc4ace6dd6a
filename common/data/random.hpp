#pragma once
// The book's source of random numbers. The C++ standard fixes the bits of std::mt19937, but not
// those of std::normal_distribution and the like, and log and cos differ from one C library to the
// next. Here each number is made from the generator's bits by exact operations and single
// roundings, so the same seed gives the same data everywhere.
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace ddp {

class Random {
  public:
    // Seeds the generator; all 64 bits of the seed matter.
    explicit Random(std::uint64_t seed);

    // Returns a whole number from 0 to n - 1, where 0 < n <= 2^32. The numbers' probabilities
    // differ relatively by at most n / 2^32, too little to matter here.
    std::size_t below(std::size_t n);

    // Returns a number from low up to high, in steps of (high - low) / 2^24.
    float uniform(float low, float high);

    // Returns a number with mean 0 and standard deviation 1: the sum of twelve uniform numbers
    // minus the sum's mean. It is close enough to a normal distribution for noise, and stays within
    // -6 and 6.
    float normal();

    // Returns the generator's state as text. A generator that is given this state continues with
    // the same numbers as this one.
    std::string state() const;
    // Restores a state. Throws std::invalid_argument if the text is not one.
    void set_state(const std::string& state);

  private:
    std::mt19937 engine_;
};

}  // namespace ddp
