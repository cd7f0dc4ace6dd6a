#pragma once
// The times of a collective's calls, and what kept the long ones.
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tests/bench/09_all_reduce/kernel_ends.hpp"

namespace ddp {

// The holder of the core, while a call lasted, on the rank that computed least:
enum class Cause {
    nothing,     // its kernel had it; the time went to caches, interrupts or the hypervisor
    own_host,    // the host thread of the same rank, which enqueues the next calls
    others,      // another program
    sleep,       // nobody: the kernel had waited so long that it slept
    page_fault,  // the system, which gave the kernel a page
};
inline constexpr Cause all_causes[] = {Cause::nothing, Cause::own_host, Cause::others, Cause::sleep,
                                       Cause::page_fault};
std::string to_string(Cause cause);

// Returns the cause for a call, by what it used on each rank. A rank that had the core for three
// quarters of the call was not kept.
Cause cause_of(std::span<const ThreadUse> ranks);

// Counts of times in buckets: bucket b holds those from 2^(b/2) us to 2^((b+1)/2) us.
using Histogram = std::map<int, std::size_t>;
int bucket_of(double us);
double begin_us(int bucket);

// All calls of one size.
struct CallTimes {
    std::vector<double> us;              // of each call, on rank 0
    std::vector<Cause> causes;           // of each call
    Histogram pauses;                    // of loops that only read the clock, on all cores
    double clock_us = 0, pauses_us = 0;  // that such a loop took, and its pauses of them

    // Returns how many calls lasted longer than `us`, because of this.
    std::size_t longer_than(double limit_us, Cause cause) const;
};

}  // namespace ddp
