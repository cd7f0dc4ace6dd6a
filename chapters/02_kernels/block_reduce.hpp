#pragma once
// An array becomes one value: its sum, its largest or its smallest element. Five versions, each of
// which mends what is slow in the one before it.
//
// A float sum depends on the order of its additions, so each version says what its order is. All
// but the first are deterministic: the same array gives the same bits, run after run.
#include <cstddef>
#include <string>

#include "02_kernels/reduction.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {

enum class ReduceVersion {
    // All threads add to the one result by atomics, one element after the other. The order is that
    // in which they come: not deterministic. Only what CUDA has atomics for: see has_atomic.
    atomics,
    // A block of B threads takes B elements, and adds neighbours to neighbours in shared memory:
    // ((x0 + x1) + (x2 + x3)) + ... The blocks' sums, in order, are an array that is reduced by the
    // same kernel again, until one is left: all in all the tree over pairs of neighbours.
    interleaved,
    // A block takes 8 B elements: each thread adds up every B-th of them, then the first half of
    // the threads adds the second half's sums to its own, and so on. Passes as above.
    sequential,
    // Like `sequential`, but within a warp of 32 threads sums go from register to register, and one
    // barrier is enough.
    warps,
    // A fixed number of blocks at most, so that two passes do (on a CPU one). A thread takes its
    // share by grid_range, which differs between a CPU and a GPU: element k of it goes into sum
    // k % 32, then the second half of the 32 sums into the first, and so on; then as `warps`.
    lanes,
};
inline constexpr ReduceVersion reduce_versions[] = {
    ReduceVersion::atomics, ReduceVersion::interleaved, ReduceVersion::sequential,
    ReduceVersion::warps, ReduceVersion::lanes};

std::string name_of(ReduceVersion version);

// Which version, in blocks of how many threads: a power of two from 32 to 1024.
struct BlockReduce {
    ReduceVersion version = ReduceVersion::lanes;
    unsigned int block = 256;
};

// How many elements of T block_reduce() needs to keep the results of blocks in.
std::size_t scratch_elements(const BlockReduce& how, std::size_t n);

// The longest chain of additions that wait for each other, those of nothing included where a block
// is not full.
std::size_t steps_of(const BlockReduce& how, std::size_t n);

// Enqueues *result = values[0] op values[1] op ... op values[n - 1], for op sum, maximum or minimum
// and T float, double or int. All pointers are device memory; `result` is one element, and
// `scratch` holds scratch_elements(how, n), for this call alone until it is done. n may be 0: the
// result is then 0, or that which is smaller (larger) than all others. Throws std::invalid_argument
// for another number of threads, and for atomics that CUDA has not.
template <ReduceOp op, class T>
void block_reduce(const BlockReduce& how, std::size_t n, const T* values, T* result, T* scratch,
                  Stream& stream);

}  // namespace ddp
