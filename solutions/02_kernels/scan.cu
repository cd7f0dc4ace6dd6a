// The exercise scan: the sum before every element. Read exercises/02_kernels/README.md first.
#include "exercises/02_kernels/scan.hpp"

namespace ddp {
namespace {

// stub
//: Your kernels go here. They can use everything of 02_kernels: __shared__ arrays,
//: dynamic_shared<T>(), __syncthreads(), __shfl_up_sync().
struct Sums {
    int before;  // of the numbers of all threads before this one
    int all;     // of the block's numbers
};

// Scans the block's numbers, one per thread. All threads of the block call it. In each step a
// thread adds the sum `distance` places before its own, so that its sum covers twice as many.
__device__ Sums scan_block(int mine) {
    int* sums = dynamic_shared<int>();
    const unsigned int thread = threadIdx.x;
    sums[thread] = mine;
    __syncthreads();
    for (unsigned int distance = 1; distance < blockDim.x; distance *= 2) {
        const int left = thread >= distance ? sums[thread - distance] : 0;
        __syncthreads();  // all threads have read
        sums[thread] += left;
        __syncthreads();  // all threads have written
    }
    const Sums result{sums[thread] - mine, sums[blockDim.x - 1]};
    __syncthreads();  // the memory is free for the next call
    return result;
}

// Returns the first element of block b's chunk, which ends before first_of(n, b + 1).
__device__ int first_of(int n, unsigned int block) {
    return static_cast<int>(static_cast<long long>(n) * block / gridDim.x);
}

// Writes the sum of each block's chunk to sums[b].
__global__ void sum_chunks(const int* counts, int n, int* sums) {
    const int last = first_of(n, blockIdx.x + 1);
    int mine = 0;
    for (int i = first_of(n, blockIdx.x) + static_cast<int>(threadIdx.x); i < last;
         i += static_cast<int>(blockDim.x))
        mine += counts[i];
    const int sum = scan_block(mine).all;
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}

// Scans each block's chunk, one element per thread at a time. before_chunk[b] is the sum before the
// chunk, and 0 if before_chunk is null. `starts` may be `counts`.
__global__ void scan_chunks(const int* counts, int n, const int* before_chunk, int* starts) {
    const int last = first_of(n, blockIdx.x + 1);
    int before = before_chunk == nullptr ? 0 : before_chunk[blockIdx.x];
    for (int first = first_of(n, blockIdx.x); first < last; first += static_cast<int>(blockDim.x)) {
        const int i = first + static_cast<int>(threadIdx.x);
        const Sums sums = scan_block(i < last ? counts[i] : 0);
        if (i < last)
            starts[i] = before + sums.before;
        before += sums.all;
    }
}

// Writes 1 for each value that is kept and 0 for the others.
__global__ void mark_kept(std::size_t n, const float* values, float threshold, int* is_kept) {
    for (std::size_t i : grid_range(n))
        is_kept[i] = fabsf(values[i]) >= threshold;
}

// Writes the kept values and their places. A value's index in the result is the number kept before.
__global__ void collect_kept(std::size_t n, const float* values, const int* is_kept,
                             const int* kept_before, Compact result) {
    for (std::size_t i : grid_range(n)) {
        const int to = kept_before[i];
        if (is_kept[i]) {
            result.values[to] = values[i];
            result.places[to] = static_cast<int>(i);
        }
        if (i == n - 1)
            *result.count = to + is_kept[i];
    }
}

LaunchShape shape_of(int blocks, int block) {
    const auto threads = static_cast<unsigned int>(block);
    return {dim3(static_cast<unsigned int>(blocks)), dim3(threads), threads * sizeof(int)};
}
// end stub

}  // namespace

void starts_by_one_block(const int* counts, int n, int block, int* starts, Stream& stream) {
    // stub: prefix_sums
    //: launch(stream, {grid, block, bytes of dynamic shared memory}, kernel, arguments...);
    launch(stream, shape_of(1, block), scan_chunks, counts, n, nullptr, starts);
    // end stub
}

void starts_by_many_blocks(const int* counts, int n, int blocks, int block, int* scratch,
                           int* starts, Stream& stream) {
    // stub: over_blocks
    //: A block cannot know the sum before its chunk until the earlier chunks have been added up.
    launch(stream, shape_of(blocks, block), sum_chunks, counts, n, scratch);
    launch(stream, shape_of(1, block), scan_chunks, scratch, blocks, nullptr, scratch);
    launch(stream, shape_of(blocks, block), scan_chunks, counts, n, scratch, starts);
    // end stub
}

void compact(const float* values, int n, float threshold, int blocks, int block, int* scratch,
             Compact result, Stream& stream) {
    // stub: compact
    //: Count 1 for each value that is kept and 0 for the others: what do their starts tell you?
    const auto size = static_cast<std::size_t>(n);
    int* is_kept = scratch;
    int* kept_before = is_kept + n;
    launch(stream, grid_for(size), mark_kept, size, values, threshold, is_kept);
    starts_by_many_blocks(is_kept, n, blocks, block, kept_before + n, kept_before, stream);
    launch(stream, grid_for(size), collect_kept, size, values, is_kept, kept_before, result);
    // end stub
}

}  // namespace ddp
