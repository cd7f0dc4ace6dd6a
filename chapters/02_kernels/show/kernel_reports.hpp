#pragma once
// The tables of the chapter's small kernels: who computes what, what is read too early, what a race
// loses, and what a barrier and a warp do.
#include <filesystem>

namespace ddp {

// Prints which thread computes each of ten elements, then checks a million sums.
void show_threads();

// Prints what the host reads at once, after an event and after synchronize.
void show_looks();

// Prints the steps of two threads that add to one sum, and the sums of two that really run at the
// same time.
void show_race();

// Prints a block's shared memory after each step of a tree, with and without the barrier.
void show_barrier();

// Prints how many lanes of each warp are busy in each step of both trees. Writes, beside `csv`,
// which they are: a file whose name ends in _warps. An empty path writes none.
void show_warps(const std::filesystem::path& csv);

}  // namespace ddp
