#pragma once
// One block adds up as many numbers as it has threads, and notes down each step.
#include <vector>

namespace ddp {

// The kernels: they differ in the threads that add in a step, and in whether threads wait.
enum class TreeKernel {
    interleaved,       // every second, fourth, eighth ... thread
    sequential,        // the first half, quarter, eighth ... of the threads
    without_barriers,  // like sequential, but no thread waits after a step: the sum may be wrong
};

// The content of a thread's place in shared memory after a step, and whether the thread added in
// it.
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
TreeSteps sum_of_block(TreeKernel kernel, const std::vector<int>& values);

}  // namespace ddp
