#pragma once
// An array becomes one value: its sum, its largest or its smallest element. There are five
// versions, and each removes what is slow in the one before it.
//
// A float sum depends on the order of its additions, so each version documents its order. All but
// the first are deterministic: the same array gives the same bits in every run.
#include <cstddef>
#include <string>

#include "02_kernels/reduction.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {

// The five kernels of block_reduce.cuh, with the order of their additions.
enum class ReduceVersion {
    // All threads add to the one result by atomics. The order of the additions differs from run to
    // run: not deterministic. Exists for the operations and types that has_atomic is true for.
    atomics,
    // A block of B threads reads B elements and adds neighbours to neighbours in shared memory:
    // ((x0 + x1) + (x2 + x3)) + ... The blocks' sums, in order, are an array that the same kernel
    // reduces again until one sum is left. Together this is the tree over pairs of neighbours.
    interleaved,
    // A block reads 8 B elements. Each thread adds up every B-th of them; then the first half of
    // the threads adds the sums of the second half to its own, and so on. Passes as above.
    sequential,
    // Like `sequential`, but within a warp of 32 threads the sums pass from register to register,
    // and one barrier is enough.
    warps,
    // A limited number of blocks, so that two passes are enough (one on a CPU). A thread's share
    // comes from grid_range, which differs between a CPU and a GPU. Element k of the share goes
    // into sum k % 32; then the second half of the 32 sums is added to the first, and so on; then
    // as `warps`. (There are 16 sums of floats in blocks of 1024 threads, and half as many sums of
    // doubles as of floats.)
    accumulators,
};
inline constexpr ReduceVersion reduce_versions[] = {
    ReduceVersion::atomics, ReduceVersion::interleaved, ReduceVersion::sequential,
    ReduceVersion::warps, ReduceVersion::accumulators};

// Returns the name that tables and messages use.
std::string name_of(ReduceVersion version);

// The version and the size of its blocks.
struct BlockReduce {
    ReduceVersion version = ReduceVersion::accumulators;
    unsigned int block = 256;  // threads: a power of two from 32 to 1024
};

// Returns the number of blocks of one pass over n elements, which is the number of values that it
// leaves. Throws std::invalid_argument unless config.block is a power of two from 32 to 1024.
std::size_t blocks_of(const BlockReduce& config, std::size_t n);

// Returns how many sums of floats a thread of `accumulators` keeps.
unsigned int sums_of_thread(const BlockReduce& config);

// Returns the number of elements of T that block_reduce() needs for the values of its blocks.
std::size_t scratch_elements(const BlockReduce& config, std::size_t n);

// Returns the length of the longest chain of additions of floats that wait for each other. Counts
// additions of the neutral element as well, where a block is not full.
std::size_t steps_of(const BlockReduce& config, std::size_t n);

// Enqueues *result = values[0] op values[1] op ... op values[n - 1], for op sum, maximum or minimum
// and T float, double or int. All pointers are device memory; `result` is one element. `scratch`
// holds scratch_elements(config, n) elements, which nothing else may use until the stream has done
// this call. n may be 0: the result is then 0 for a sum, and the neutral element for a maximum
// (minimum), which is not larger (smaller) than any other. Throws std::invalid_argument for
// another number of threads, and for an atomic that CUDA does not have.
template <ReduceOp op, class T>
void block_reduce(const BlockReduce& config, std::size_t n, const T* values, T* result, T* scratch,
                  Stream& stream);

// ---- The work, counted without a run (reduce_work.cpp)

// Where times depend on the device, these numbers do not (but for `accumulators`, whose grid is
// different on a CPU).
struct ReduceWork {
    std::size_t additions_in_a_row;  // that wait for each other: steps_of()
    std::size_t barriers_in_a_row;   // that a block meets, over all passes
    // Additions that a warp executes, over all warps. It takes as long with one busy lane as with
    // 32. Atomics count one by one, since the place that they change serves one at a time.
    std::size_t warp_additions;
    // Waits of threads for others, at a barrier or for their warp, added up over all threads. On
    // a CPU each of them costs two switches between threads.
    std::size_t waits;
};

// Returns the work of block_reduce<ReduceOp::sum>(config, n, ...).
ReduceWork work_of(const BlockReduce& config, std::size_t n);

}  // namespace ddp
