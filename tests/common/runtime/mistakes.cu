#include "tests/common/runtime/mistakes.hpp"

#include <algorithm>
#include <cuda/atomic>
#include <numeric>
#include <thread>

#include "common/gpu/gpu.hpp"
#include "cuda_on_cpu/settings.hpp"

namespace ddp::test {
namespace {

constexpr int block_threads = 128;

std::vector<int> counting(std::size_t n) {
    std::vector<int> values(n);
    std::iota(values.begin(), values.end(), 1);
    return values;
}

using Kernel = void (*)(const int*, int*);
enum class Launch { ordinary, cooperative };

// Gives `kernel` 1, 2, 3 ..., one for each thread, and twice as many zeros, in which it leaves what
// is returned.
std::vector<int> output_of(Kernel kernel, const LaunchShape& shape, Launch how = Launch::ordinary) {
    Stream stream;
    const std::size_t n = std::size_t{shape.grid.x} * shape.block.x;
    Buffer<int> in(counting(n)), out(std::vector<int>(2 * n, 0));
    if (how == Launch::ordinary)
        launch(stream, shape, kernel, in.data(), out.data());
    else
        launch_cooperative(stream, shape, kernel, in.data(), out.data());
    stream.synchronize();
    return out.to_host_now();
}

// Returns an example that is right if `value` gives what the first threads of `shape` must leave.
Example example(const std::string& name, Kernel kernel, const LaunchShape& shape, int results,
                int (*value)(int thread), Launch how = Launch::ordinary) {
    return {name, [=] {
                const std::vector<int> out = output_of(kernel, shape, how);
                for (int i = 0; i < results; i++)
                    if (out[static_cast<std::size_t>(i)] != value(i))
                        return false;
                return true;
            }};
}

// ---- Barriers

__global__ void take_from_the_left(const int* in, int* out) {
    __shared__ int piece[block_threads];
    piece[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = threadIdx.x == 0 ? 0 : piece[threadIdx.x - 1];
}
int left_value(int thread) {
    return thread;
}

// Adds up, over three rounds, what the thread to the right holds.
template <bool right>
__global__ void use_again(const int* in, int* out) {
    __shared__ int piece[block_threads];
    for (int round = 0; round < 3; round++) {
        piece[threadIdx.x] = in[threadIdx.x] + round;
        __syncthreads();
        if (threadIdx.x < block_threads - 1)
            out[threadIdx.x] += piece[threadIdx.x + 1];
        if (right)
            __syncthreads();
    }
}
int three_rounds(int thread) {
    return thread < block_threads - 1 ? 3 * (thread + 2) + 3 : 0;
}

// Adds up all values to the left of a thread, and its own.
__global__ void scan_in_one_go(const int* in, int* out) {
    __shared__ int sums[block_threads];
    sums[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    for (unsigned int distance = 1; distance < block_threads; distance *= 2) {
        if (threadIdx.x >= distance)
            sums[threadIdx.x] += sums[threadIdx.x - distance];
        __syncthreads();
    }
    out[threadIdx.x] = sums[threadIdx.x];
}
__global__ void scan_in_two_goes(const int* in, int* out) {
    __shared__ int sums[block_threads];
    sums[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    for (unsigned int distance = 1; distance < block_threads; distance *= 2) {
        const int left = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
        __syncthreads();
        sums[threadIdx.x] += left;
        __syncthreads();
    }
    out[threadIdx.x] = sums[threadIdx.x];
}
int sum_up_to(int thread) {
    return (thread + 1) * (thread + 2) / 2;
}
int block_sum(int) {
    return sum_up_to(block_threads - 1);
}

__global__ void return_before_a_barrier(const int*, int*) {
    if (threadIdx.x == 77)
        return;
    __syncthreads();
}

__global__ void meet_in_two_branches(const int*, int*) {
    if (threadIdx.x < 77)
        __syncthreads();
    else
        __syncthreads();
}

// Threads have two or three values each, and go round as often.
__global__ void meet_once_a_value(const int* in, int* out) {
    __shared__ int piece[block_threads];
    for (unsigned int i = threadIdx.x; i < block_threads * 5 / 2; i += blockDim.x) {
        piece[threadIdx.x] = in[i % block_threads];
        __syncthreads();
        out[threadIdx.x] += piece[threadIdx.x];
    }
}

__global__ void meet_if_busy(const int* in, int* out) {
    __shared__ int sums[block_threads];
    sums[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    for (unsigned int half = block_threads / 2; half > 0; half /= 2)
        if (threadIdx.x < half) {
            sums[threadIdx.x] += sums[threadIdx.x + half];
            __syncthreads();
        }
    if (threadIdx.x == 0)
        *out = sums[0];
}

// ---- Warps

__global__ void reverse_by_syncwarp(const int* in, int* out) {
    __shared__ int piece[block_threads];
    piece[threadIdx.x] = in[threadIdx.x];
    __syncwarp();
    out[threadIdx.x] = piece[block_threads - 1 - threadIdx.x];
}
int reversed_value(int thread) {
    return block_threads - thread;
}

// Each odd lane takes what the lane to its left holds.
template <bool right>
__global__ void take_within_warps(const int* in, int* out) {
    __shared__ int piece[block_threads];
    piece[threadIdx.x] = in[threadIdx.x];
    if (right)
        __syncwarp();
    if (threadIdx.x % 2 == 1)
        out[threadIdx.x] = piece[threadIdx.x - 1];
}
// The same, five times in one half of each warp and twice in the other.
__global__ void take_within_halves(const int* in, int* out) {
    __shared__ int piece[block_threads];
    const unsigned int lane = threadIdx.x % 32;
    const unsigned int mask = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    for (unsigned int round = 0; round < (lane < 16 ? 5u : 2u); round++) {
        piece[threadIdx.x] = in[threadIdx.x];
        __syncwarp(mask);
        if (lane % 2 == 1)
            out[threadIdx.x] = piece[threadIdx.x - 1];
        __syncwarp(mask);
    }
}
int odd_value(int thread) {
    return thread % 2 == 1 ? thread : 0;
}

// Adds up a block's values. The last warp goes on alone, and its lanes meet or do not.
template <bool right>
__global__ void sum_with_a_last_warp(const int* in, int* out) {
    __shared__ int sums[block_threads];
    sums[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    for (unsigned int half = block_threads / 2; half >= 32; half /= 2) {
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x >= 32)
        return;
    for (unsigned int half = 16; half > 0; half /= 2) {
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
        if (right)
            __syncwarp();
    }
    if (threadIdx.x == 0)
        out[0] = sums[0];
}

__global__ void meet_at_two_warp_calls(const int*, int*) {
    if (threadIdx.x % 2 == 0)
        __syncwarp();
    else
        __ballot_sync(0xffffffffu, 1);
}

__global__ void shuffle_from_outside(const int* in, int* out) {
    if (threadIdx.x < 16)
        out[threadIdx.x] = __shfl_sync(0x0000ffffu, in[threadIdx.x], 20);
}
int value_of_lane_20(int) {
    return 21;
}

// ---- Counting

template <bool right>
__global__ void histogram(const int* in, int* out) {
    __shared__ int count[8];
    if (threadIdx.x < 8)
        count[threadIdx.x] = 0;
    __syncthreads();
    if (right)
        atomicAdd(&count[in[threadIdx.x] % 8], 1);
    else
        count[in[threadIdx.x] % 8]++;
    __syncthreads();
    if (threadIdx.x < 8)
        out[threadIdx.x] = count[threadIdx.x];
}
int eighth(int) {
    return block_threads / 8;
}

template <bool right>
__global__ void sum_in_one_place(const int* in, int* out) {
    const int value = in[blockIdx.x * blockDim.x + threadIdx.x];
    if (right)
        atomicAdd(out, value);
    else
        *out += value;
}
int sum_of_blocks(int) {
    return sum_up_to(19);
}

// One thread after another adds its value, whoever has the lock.
template <bool right>
__global__ void sum_under_a_lock(const int* in, int* out) {
    int* lock = out + 1;
    while (atomicCAS(lock, 0, 1) != 0)
        __nanosleep(100);
    if (right)
        __threadfence();
    *out += in[threadIdx.x];
    if (right)
        __threadfence();
    atomicExch(lock, 0);
}

// ---- Blocks of one launch

__global__ void read_the_neighbour(const int* in, int* out) {
    int* written = out + gridDim.x;
    written[blockIdx.x] = in[blockIdx.x];
    out[blockIdx.x] = blockIdx.x == 0 ? 0 : written[blockIdx.x - 1];
}

// The block that comes last adds up what all have left.
enum class Fences { both, none, behind_the_counter };
template <Fences fences>
__global__ void sum_in_the_last_block(const int* in, int* out) {
    int* counter = out + 1;
    int* partial = out + 2;
    partial[blockIdx.x] = in[blockIdx.x];
    if (fences == Fences::both)
        __threadfence();
    const bool is_last = atomicAdd(counter, 1) == static_cast<int>(gridDim.x) - 1;
    if (fences != Fences::none)
        __threadfence();
    if (is_last)
        for (unsigned int i = 0; i < gridDim.x; i++)
            *out += partial[i];
}

template <cuda::thread_scope scope, std::memory_order release, std::memory_order acquire>
__global__ void pass_on(const int* in, int* out) {
    const cuda::atomic_ref<int, scope> flag(out[1]);
    int* value = out + 2;
    if (blockIdx.x == 0) {
        *value = in[1] + 5;
        flag.store(1, release);
    } else {
        while (flag.load(acquire) == 0)
            __nanosleep(100);
        *out = *value;
    }
}
int seven(int) {
    return 7;
}

__global__ void pass_on_without_atomics(const int* in, int* out) {
    volatile int* flag = out + 1;
    int* value = out + 2;
    if (blockIdx.x == 0) {
        *value = in[1] + 5;
        __threadfence();
        *flag = 1;
    } else {
        while (*flag == 0)
            __nanosleep(100);
        __threadfence();
        *out = *value;
    }
}

// Block 1 reverses what the threads of block 0 have written. It begins when that is done: `written`
// makes the result right, and puts nothing in order.
template <bool barrier_before_release, bool barrier_behind_acquire>
__global__ void pass_on_many(const int* in, int* out) {
    int* values = out + block_threads;
    const cuda::atomic_ref<int, cuda::thread_scope_device> flag(out[2 * block_threads]),
        written(out[2 * block_threads + 1]);
    if (blockIdx.x == 0) {
        values[threadIdx.x] = in[threadIdx.x];
        if (barrier_before_release)
            __syncthreads();
        if (threadIdx.x == 0)
            flag.store(1, cuda::memory_order_release);
        written.fetch_add(1, cuda::memory_order_relaxed);
    } else {
        while (written.load(cuda::memory_order_relaxed) < block_threads)
            __nanosleep(100);
        while (threadIdx.x == 0 && flag.load(cuda::memory_order_acquire) == 0)
            __nanosleep(100);
        if (barrier_behind_acquire)
            __syncthreads();
        out[threadIdx.x] = values[block_threads - 1 - threadIdx.x];
    }
}

// Block 0 passes two values on by way of one place. The second may come when the first was read.
template <std::memory_order store, std::memory_order load>
__global__ void use_a_slot_again(const int* in, int* out) {
    const cuda::atomic_ref<int, cuda::thread_scope_device> sent(out[1]), taken(out[2]);
    int* slot = out + 3;
    for (int round = 1; round <= 2; round++) {
        if (blockIdx.x == 0) {
            while (taken.load(load) < round - 1)
                __nanosleep(100);
            *slot = in[0] + round;
            sent.store(round, cuda::memory_order_release);
        } else {
            while (sent.load(cuda::memory_order_acquire) < round)
                __nanosleep(100);
            *out += *slot;
            taken.store(round, store);
        }
    }
}
int five(int) {
    return 5;
}

// A barrier for all blocks, by a counter: it takes blocks that run at the same time.
__global__ void meet_all_blocks(const int*, int* out) {
    atomicAdd(out, 1);
    while (cuda::atomic_ref<int>(*out).load(cuda::memory_order_acquire) <
           static_cast<int>(gridDim.x))
        __nanosleep(1000);
}
bool meets_all_blocks() {
    cuda_on_cpu::Settings settings = cuda_on_cpu::settings();
    settings.kernel_timeout_s = 1;
    cuda_on_cpu::set_settings(settings);
    output_of(meet_all_blocks, {2, 1});
    return true;
}

// Reverses the values of each block by way of its shared memory.
__global__ void reverse_blocks(const int* in, int* out) {
    __shared__ int piece[32];
    int* dynamic = dynamic_shared<int>();
    const unsigned int first = blockIdx.x * 32;
    piece[threadIdx.x] = in[first + threadIdx.x];
    dynamic[31 - threadIdx.x] = 0;
    __syncthreads();
    dynamic[threadIdx.x] += piece[31 - threadIdx.x];
    out[first + threadIdx.x] = dynamic[threadIdx.x];
}
int reversed_in_blocks(int thread) {
    return thread / 32 * 32 + 32 - thread % 32;
}

// ---- Streams and the host

using SystemFlag = cuda::atomic_ref<int, cuda::thread_scope_system>;

__global__ void wait_for(int* flag) {
    while (SystemFlag(*flag).load(cuda::memory_order_relaxed) == 0)
        __nanosleep(1000);
}

// A flag for what must wait. It orders nothing.
class Gate {
  public:
    Gate() : flag_(1) { flag_[0] = 0; }
    int* flag() { return flag_.data(); }
    void open() { SystemFlag(flag_[0]).store(1, cuda::memory_order_relaxed); }
    void wait() {
        while (SystemFlag(flag_[0]).load(cuda::memory_order_relaxed) == 0)
            std::this_thread::yield();
    }

  private:
    PinnedBuffer<int> flag_;
};

__global__ void write_late(int* flag, int* to) {
    while (SystemFlag(*flag).load(cuda::memory_order_relaxed) == 0)
        __nanosleep(1000);
    *to = 7;
}

__global__ void copy_early(const int* from, int* to, int* flag) {
    *to = *from;
    SystemFlag(*flag).store(1, cuda::memory_order_relaxed);
}

// Copies on one stream what another one writes.
template <bool right>
bool copies_from_another_stream() {
    Stream writer, reader;
    Event is_written;
    Buffer<int> value(std::vector<int>{0}), copy(std::vector<int>{0});
    Gate gate;
    if (right)
        gate.open();
    launch(writer, {1, 1}, write_late, gate.flag(), value.data());
    is_written.record(writer);
    if (right)
        reader.wait(is_written);
    launch(reader, {1, 1}, copy_early, value.data(), copy.data(), gate.flag());
    reader.synchronize();
    writer.synchronize();
    return copy.to_host_now()[0] == 7;
}

__global__ void write_early(int* flag, int* to) {
    *to = 7;
    SystemFlag(*flag).store(1, cuda::memory_order_relaxed);
}

// Copies on one stream what another one has written long ago, which only the clock says.
bool copies_what_was_written() {
    Stream writer, reader;
    Buffer<int> value(std::vector<int>{0}), copy(std::vector<int>{0});
    Gate gate;
    launch(writer, {1, 1}, write_early, gate.flag(), value.data());
    gate.wait();
    launch(reader, {1, 1}, copy_early, value.data(), copy.data(), gate.flag());
    reader.synchronize();
    writer.synchronize();
    return copy.to_host_now()[0] == 7;
}

// Reads on the host what a copy brings.
template <bool right>
bool reads_a_copy() {
    Stream stream;
    const Buffer<int> value(std::vector<int>{7});
    PinnedBuffer<int> copy(1);
    copy[0] = 0;
    Gate gate;
    launch(stream, {1, 1}, wait_for, gate.flag());
    DDP_CHECK(cudaMemcpyAsync(copy.data(), value.data(), 4, cudaMemcpyDeviceToHost, stream));
    if (right) {
        gate.open();
        stream.synchronize();
    }
    const bool is_right = copy[0] == 7;
    gate.open();
    while (SystemFlag(copy[0]).load(cuda::memory_order_relaxed) != 7) {
    }
    stream.synchronize();
    return is_right;
}

// ---- Memory

// Adds up what a thread and the one to its right hold. The last thread has none to its right.
__global__ void add_past_the_end(const int* in, int* out) {
    __shared__ struct {
        int values[block_threads];
        int behind;
    } piece;
    piece.values[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x == 0)
        piece.behind = 0;
    __syncthreads();
    out[threadIdx.x] = piece.values[threadIdx.x] + piece.values[threadIdx.x + 1];
}
int pair_sum(int thread) {
    return thread < block_threads - 1 ? 2 * thread + 3 : block_threads;
}

__global__ void write_past_dynamic_shared_memory(const int* in, int* out) {
    int* piece = dynamic_shared<int>();
    piece[threadIdx.x + 1] = in[threadIdx.x];
    out[threadIdx.x] = piece[threadIdx.x + 1];
}

__global__ void write_past_device_memory(const int* in, int* out) {
    out[2 * block_threads + threadIdx.x] = in[threadIdx.x];
}

__global__ void add_to_fresh_shared_memory(const int* in, int* out) {
    __shared__ float sum;
    atomicAdd(&sum, static_cast<float>(in[threadIdx.x]));
    __syncthreads();
    if (threadIdx.x == 0)
        *out = sum == static_cast<float>(sum_up_to(block_threads - 1)) ? 7 : 0;
}

__global__ void add_to(const float* value, float* sum) {
    *sum += *value;
}
bool adds_to_fresh_device_memory() {
    Stream stream;
    Buffer<float> value(std::vector<float>{1.5f}), sum(1);
    launch(stream, {1, 1}, add_to, value.data(), sum.data());
    stream.synchronize();
    return sum.to_host_now()[0] == 1.5f;
}

struct Hidden {  // pointers inside a struct are not checked at the launch
    const int* data;
};
__global__ void read_hidden(Hidden from, int* to) {
    *to = *from.data;
}
bool reads_freed_memory() {
    Stream stream;
    Buffer<int> to(1);
    Hidden freed{};
    {
        const Buffer<int> from(std::vector<int>{7});
        freed.data = from.data();
    }
    launch(stream, {1, 1}, read_hidden, freed, to.data());
    stream.synchronize();
    return to.to_host_now()[0] == 7;
}

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto release = std::memory_order_release;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto device = cuda::thread_scope_device;
constexpr auto block = cuda::thread_scope_block;

}  // namespace

std::vector<Example> mistakes() {
    const int n = block_threads;
    const LaunchShape one(1, n), with_shared(1, n, 4 * n), blocks(20, 1), two(2, 1),
        two_of_many(2, n);
    const auto both_at_once = Launch::cooperative;
    return {
        example("no barrier between writing and reading", take_from_the_left, one, n, left_value),
        example("no second barrier before shared memory is used again", use_again<false>, one, n,
                three_rounds),
        example("in-place scan with one barrier a step", scan_in_one_go, one, n, sum_up_to),
        example("a barrier that one thread does not reach", return_before_a_barrier, one, 0, seven),
        example("a barrier in each of two branches", meet_in_two_branches, one, 0, seven),
        example("a barrier in a loop that not all threads go round as often", meet_once_a_value,
                one, 0, seven),
        example("a barrier inside the `if` of a tree", meet_if_busy, one, 1, block_sum),
        example("`__syncwarp` where `__syncthreads` is needed", reverse_by_syncwarp, one, n,
                reversed_value),
        example("no `__syncwarp` between lanes that exchange values", take_within_warps<false>, one,
                n, odd_value),
        example("no `__syncwarp` in the last warp of a reduction", sum_with_a_last_warp<false>, one,
                1, block_sum),
        example("lanes of one mask at two calls", meet_at_two_warp_calls, one, 0, seven),
        example("a shuffle from a lane outside the mask", shuffle_from_outside, one, 16,
                value_of_lane_20),
        example("a histogram in shared memory without atomics", histogram<false>, one, 8, eighth),
        example("threads add to one number without atomics", sum_in_one_place<false>, one, 1,
                block_sum),
        example("a lock without fences", sum_under_a_lock<false>, one, 1, block_sum),
        example("blocks add to one number without atomics", sum_in_one_place<false>, blocks, 1,
                sum_of_blocks),
        example("a block reads what its neighbour writes", read_the_neighbour, blocks, 20,
                left_value),
        example("the last block adds up, without fences", sum_in_the_last_block<Fences::none>,
                blocks, 1, sum_of_blocks),
        example("the same, with a fence only after the counter",
                sum_in_the_last_block<Fences::behind_the_counter>, blocks, 1, sum_of_blocks),
        example("a flag between blocks without release and acquire",
                pass_on<device, relaxed, relaxed>, two, 1, seven, both_at_once),
        example("a flag that is stored without release", pass_on<device, relaxed, acquire>, two, 1,
                seven, both_at_once),
        example("a flag that is loaded without acquire", pass_on<device, release, relaxed>, two, 1,
                seven, both_at_once),
        example("a flag that is not atomic", pass_on_without_atomics, two, 1, seven, both_at_once),
        example("one thread releases what others have written, without a barrier",
                pass_on_many<false, true>, two_of_many, n, reversed_value, both_at_once),
        example("one thread acquires what others read, without a barrier",
                pass_on_many<true, false>, two_of_many, n, reversed_value, both_at_once),
        example("a place used again, acknowledged without release and acquire",
                use_a_slot_again<relaxed, relaxed>, two, 1, five, both_at_once),
        {"a barrier for all blocks in an ordinary launch", meets_all_blocks},
        example("a flag with the scope of a block", pass_on<block, release, acquire>, two, 1, seven,
                both_at_once),
        {"two streams without an event", copies_from_another_stream<false>},
        {"the same, the first one long done", copies_what_was_written},
        {"the host reads before it synchronises", reads_a_copy<false>},
        example("past the end of a `__shared__` array", add_past_the_end, one, n, pair_sum),
        example("past the end of dynamic shared memory", write_past_dynamic_shared_memory,
                with_shared, n, sum_up_to),
        example("past the end of device memory", write_past_device_memory, one, 0, seven),
        {"device memory that was freed", reads_freed_memory},
        example("shared memory that no thread has set", add_to_fresh_shared_memory, one, 1, seven),
        {"device memory that was never set", adds_to_fresh_device_memory},
    };
}

std::vector<Example> right_examples() {
    const int n = block_threads;
    const LaunchShape one(1, n), blocks(20, 1), blocks_with_shared(20, 32, 32 * 4), two(2, 1),
        two_of_many(2, n);
    return {
        example("use again", use_again<true>, one, n, three_rounds),
        example("scan", scan_in_two_goes, one, n, sum_up_to),
        example("take within warps", take_within_warps<true>, one, n, odd_value),
        example("take within halves", take_within_halves, one, n, odd_value),
        example("sum", sum_with_a_last_warp<true>, one, 1, block_sum),
        example("histogram", histogram<true>, one, 8, eighth),
        example("sum of threads", sum_in_one_place<true>, one, 1, block_sum),
        example("sum of blocks", sum_in_one_place<true>, blocks, 1, sum_of_blocks),
        example("sum in the last block", sum_in_the_last_block<Fences::both>, blocks, 1,
                sum_of_blocks),
        example("flag", pass_on<device, release, acquire>, two, 1, seven, Launch::cooperative),
        example("lock", sum_under_a_lock<true>, one, 1, block_sum),
        example("flag for many", pass_on_many<true, true>, two_of_many, n, reversed_value,
                Launch::cooperative),
        example("a place used again", use_a_slot_again<release, acquire>, two, 1, five,
                Launch::cooperative),
        example("shared memory of blocks", reverse_blocks, blocks_with_shared, 640,
                reversed_in_blocks),
        {"two streams", copies_from_another_stream<true>},
        {"host and copy", reads_a_copy<true>},
    };
}

}  // namespace ddp::test
