// Ten sums in three blocks of four threads. All threads run the same function; each finds its own
// i.
//
//     blockIdx.x      0    0    0    0     1    1    1    1     2    2    2    2
//     threadIdx.x     0    1    2    3     0    1    2    3     0    1    2    3
//     i               0    1    2    3     4    5    6    7     8    9   10   11
//                     |    |    |    |     |    |    |    |     |    |    x    x    i < 10 ?
//     a               1    2    3    4     5    6    7    8     9   10
//     b              10   20   30   40    50   60   70   80    90  100
//     sum            11   22   33   44    55   66   77   88    99  110
#include "02_kernels/vector_add.hpp"

namespace ddp {
namespace {

// ---- On the device: what one thread does

// Adds one element. `__global__` makes it a kernel: the host launches it, the device runs it. All
// three pointers are device memory.
__global__ void add_elements(unsigned int n, const float* a, const float* b, float* sum) {
    // Which thread am I? Blocks before mine, times threads in a block, plus my place in my block.
    const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    // The last block may have more threads than there are elements left.
    if (i < n)
        sum[i] = a[i] + b[i];
}

// Returns the calling thread's place. `__device__` makes it a function for kernels to call.
__device__ ThreadPlace my_place() {
    return {static_cast<int>(blockIdx.x), static_cast<int>(threadIdx.x)};
}

// Writes the thread's place where add_elements writes a sum.
__global__ void sign_by_index(std::size_t n, ThreadPlace* places) {
    const std::size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        places[i] = my_place();
}

// Runs the loop that most kernels of this book have: a thread may get several elements.
__global__ void sign_by_grid_range(std::size_t n, ThreadPlace* places) {
    for (std::size_t i : grid_range(n))
        places[i] = my_place();
}

}  // namespace

// ---- On the host: memory, launch, wait, copy back

std::vector<float> add_on_device(const std::vector<float>& a, const std::vector<float>& b,
                                 unsigned int threads) {
    // Memory on the device: two arrays that are copied from the host, and one for the result.
    const Buffer<float> device_a(a), device_b(b);
    Buffer<float> device_sum(a.size());
    // The number of blocks: n / threads, rounded up.
    const auto n = static_cast<unsigned int>(a.size());
    const unsigned int blocks = (n + threads - 1) / threads;
    Stream stream;
    launch(stream, {blocks, threads}, add_elements, n, device_a.data(), device_b.data(),
           device_sum.data());
    // The launch has returned already. Wait until the device is done; then copy the sums.
    stream.synchronize();
    return device_sum.to_host_now();
}

// ---- Who computes what

namespace {

std::vector<ThreadPlace> places_by(void (*kernel)(std::size_t, ThreadPlace*), unsigned int n,
                                   unsigned int blocks, unsigned int threads) {
    Buffer<ThreadPlace> places{std::vector<ThreadPlace>(n)};
    Stream stream;
    launch(stream, {blocks, threads}, kernel, n, places.data());
    stream.synchronize();
    return places.to_host_now();
}

}  // namespace

std::vector<ThreadPlace> places_by_index(unsigned int n, unsigned int blocks,
                                         unsigned int threads) {
    return places_by(sign_by_index, n, blocks, threads);
}

std::vector<ThreadPlace> places_by_grid_range(unsigned int n, unsigned int blocks,
                                              unsigned int threads) {
    return places_by(sign_by_grid_range, n, blocks, threads);
}

}  // namespace ddp
