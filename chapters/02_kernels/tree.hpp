#pragma once
// One block adds up as many numbers as it has threads, and notes down each step.
#include <vector>

namespace ddp {

// Which threads add in a step: every second, fourth, eighth ... thread, or the first half, quarter,
// eighth ... of the threads.
enum class TreeOrder { interleaved, sequential };

// What a thread's place in shared memory holds after a step, and whether the thread added in it.
struct TreeCell {
    int value = 0;
    bool has_added = false;
};
struct TreeSteps {
    // [step][thread]. Step 0: before the first addition.
    std::vector<std::vector<TreeCell>> cells;
    int sum = 0;
};

// Adds up `values` by one block with a thread for each of them: a power of two, at most 1024.
// Without barriers the threads do not wait for each other between the steps, and the sum may be
// wrong.
TreeSteps sum_of_block(TreeOrder order, const std::vector<int>& values, bool with_barriers = true);

}  // namespace ddp
