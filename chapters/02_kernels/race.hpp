#pragma once
// Threads that add to one sum: without an atomic, where additions get lost, and with one.
#include <vector>

namespace ddp {

// One access to the sum: which thread, whether it read or wrote, and the value.
struct SumAccess {
    int thread = 0;
    bool is_write = false;
    int value = 0;
};
struct Race {
    std::vector<SumAccess> accesses;  // in the order in which they happened
    int sum = 0;
};

// Lets two threads of one block add to a sum that is 0 before: thread 0 adds 1, thread 1 adds 2.
// Without an atomic, a thread reads, loses its turn, and writes.
Race race_of_two(bool with_atomic);

// Lets two threads that run at the same time add 1 to a sum, `additions` times each; returns the
// sum. On a CPU each of the two has an operating system's thread of its own.
int sum_of_ones(int additions, bool with_atomic);

}  // namespace ddp
