// The exercise scan: the sum before every element. Read exercises/02_kernels/README.md first.
#include "exercises/02_kernels/scan.hpp"

namespace ddp {
namespace {

// stub
//: Your kernels go here. Inside of them everything of chapter 02 is at hand: __shared__ arrays,
//: dynamic_shared<T>(), __syncthreads(), __shfl_up_sync().
struct Sums {
    int before;  // of what the threads before this one bring
    int all;     // of what the block brings
};

// All threads of a block. In each step a thread adds what stands `distance` before it, so its sum
// then reaches over twice as many.
__device__ Sums scan_block(int mine) {
    int* sums = dynamic_shared<int>();
    const unsigned int thread = threadIdx.x;
    sums[thread] = mine;
    __syncthreads();
    for (unsigned int distance = 1; distance < blockDim.x; distance *= 2) {
        const int left = thread >= distance ? sums[thread - distance] : 0;
        __syncthreads();  // everyone has read
        sums[thread] += left;
        __syncthreads();  // everyone has written
    }
    const Sums result{sums[thread] - mine, sums[blockDim.x - 1]};
    __syncthreads();  // the memory is free for the next call
    return result;
}

// The elements of block b: from first_of(n, b) up to, not including, first_of(n, b + 1).
__device__ int first_of(int n, unsigned int block) {
    return static_cast<int>(static_cast<long long>(n) * block / gridDim.x);
}

__global__ void sum_pieces(const int* counts, int n, int* sums) {
    const int last = first_of(n, blockIdx.x + 1);
    int mine = 0;
    for (int i = first_of(n, blockIdx.x) + static_cast<int>(threadIdx.x); i < last;
         i += static_cast<int>(blockDim.x))
        mine += counts[i];
    const int sum = scan_block(mine).all;
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}

// A block goes through its piece, one element for each thread at a time. What is before the piece
// is in before_piece[b]; without it, nothing. `starts` may be `counts`.
__global__ void scan_pieces(const int* counts, int n, const int* before_piece, int* starts) {
    const int last = first_of(n, blockIdx.x + 1);
    int before = before_piece == nullptr ? 0 : before_piece[blockIdx.x];
    for (int first = first_of(n, blockIdx.x); first < last; first += static_cast<int>(blockDim.x)) {
        const int i = first + static_cast<int>(threadIdx.x);
        const Sums sums = scan_block(i < last ? counts[i] : 0);
        if (i < last)
            starts[i] = before + sums.before;
        before += sums.all;
    }
}

__global__ void mark_kept(std::size_t n, const float* values, float threshold, int* is_kept) {
    for (std::size_t i : grid_range(n))
        is_kept[i] = !(fabsf(values[i]) < threshold);
}

// Where a value goes is how many are kept before it.
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
    launch(stream, shape_of(1, block), scan_pieces, counts, n, nullptr, starts);
    // end stub
}

void starts_by_many_blocks(const int* counts, int n, int blocks, int block, int* scratch,
                           int* starts, Stream& stream) {
    // stub: over_blocks
    //: A block cannot know the sum before its piece until the earlier pieces have been added up.
    launch(stream, shape_of(blocks, block), sum_pieces, counts, n, scratch);
    launch(stream, shape_of(1, block), scan_pieces, scratch, blocks, nullptr, scratch);
    launch(stream, shape_of(blocks, block), scan_pieces, counts, n, scratch, starts);
    // end stub
}

void compact(const float* values, int n, float threshold, int blocks, int block, int* scratch,
             Compact result, Stream& stream) {
    // stub: compact
    //: Count 1 for each value that stays and 0 for each that goes: what do their starts say?
    const auto size = static_cast<std::size_t>(n);
    int* is_kept = scratch;
    int* kept_before = is_kept + n;
    launch(stream, grid_for(size), mark_kept, size, values, threshold, is_kept);
    starts_by_many_blocks(is_kept, n, blocks, block, kept_before + n, kept_before, stream);
    launch(stream, grid_for(size), collect_kept, size, values, is_kept, kept_before, result);
    // end stub
}

}  // namespace ddp
