#pragma once
// Processes that share one played GPU (CUDA_ON_CPU=gpu=FILE): what each of them holds of its memory
// and its multiprocessors is written in a file. What a process has held is free when it has ended,
// however it ended.
#include <cstddef>

namespace cuda_on_cpu {

bool has_tenants();

// Takes at least `least` and at most `most` of all `all` multiprocessors, and returns how many;
// takes none and returns 0 if fewer are free. A negative `least` gives so many back.
int take_from_tenants(int least, int most, int all);

// Adds `bytes` (or takes them away) to what this process holds of the device's memory, if no more
// than `all` are held then. Returns whether it did.
bool hold_bytes(long long bytes, std::size_t all);
// Returns the bytes that the other processes hold.
std::size_t bytes_of_other_tenants();

}  // namespace cuda_on_cpu
