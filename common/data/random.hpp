#pragma once
// The one source of random numbers of the book's data. The C++ standard fixes the bits of
// std::mt19937, but not those of std::normal_distribution and its kin, and log and cos differ from
// one C library to the next. Here a number is made from the generator's bits by exact steps and
// single roundings, so the same seed gives the same data everywhere.
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace ddp {

class Random {
  public:
    // Every bit of the seed counts.
    explicit Random(std::uint64_t seed);

    // A whole number from 0 to n - 1, where 0 < n <= 2^32. Numbers differ in likelihood by at most
    // n / 2^32 of it, too little to matter here.
    std::size_t below(std::size_t n);

    // From low up to high, in steps of (high - low) / 2^24.
    float uniform(float low, float high);

    // Mean 0, standard deviation 1: the sum of twelve uniform numbers minus their mean. Near enough
    // to a normal distribution for noise; never beyond -6 and 6.
    float normal();

    // All that the next numbers depend on, as text: another generator that is given it goes on as
    // this one. set_state throws std::invalid_argument for what is no such text.
    std::string state() const;
    void set_state(const std::string& state);

  private:
    std::mt19937 engine_;
};

}  // namespace ddp
