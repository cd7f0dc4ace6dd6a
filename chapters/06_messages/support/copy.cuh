#pragma once
// Copies by the threads of a kernel.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "06_messages/control.hpp"
#include "common/gpu/gpu.hpp"
#include "common/gpu/rows.hpp"

namespace ddp {

// Calls work.operator()<n>(i) for the elements of one thread: for `at_a_time` of them, i, i + step,
// ..., as long as that many are left, and then for one after the other. A GPU's memory is kept busy
// by loads that are under way together: work loads all n elements before it stores one. A CPU needs
// no such help, and its compiler makes vectors of neighbours. Only work that reads many arrays
// takes several there, too (`on_cpu`).
template <std::size_t at_a_time, std::size_t on_cpu = 1, class Work>
__device__ void by_several(GridRange range, const Work& work) {
    constexpr std::size_t n = kernels_run_on_cpu ? on_cpu : at_a_time;
    const std::size_t step = range.step;
    std::size_t i = range.first;
    for (; i + (n - 1) * step < range.last; i += n * step)
        work.template operator()<n>(i);
    if constexpr (n > 1)
        for (; i < range.last; i += step)
            work.template operator()<1>(i);
}

// Copies the words of one thread.
template <class Word>
__device__ void copy_words(std::byte* to, const std::byte* from, GridRange words) {
    auto* target = reinterpret_cast<Word*>(to);
    const auto* source = reinterpret_cast<const Word*>(from);
    const std::size_t step = words.step;
    by_several<8>(words, [&]<std::size_t n>(std::size_t i) {
        Word loaded[n];
        for (std::size_t k = 0; k < n; k++)
            loaded[k] = source[i + k * step];
        for (std::size_t k = 0; k < n; k++)
            target[i + k * step] = loaded[k];
    });
}

// Copies the share of thread `thread` of `threads`, in the widest words that the addresses and the
// size allow.
__device__ inline void copy_share(std::byte* to, const std::byte* from, std::size_t bytes,
                                  std::size_t thread, std::size_t threads) {
    const auto ends =
        reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | bytes;
    if (ends % sizeof(uint4) == 0)
        copy_words<uint4>(to, from, share_of(bytes / sizeof(uint4), thread, threads));
    else if (ends % sizeof(std::uint32_t) == 0)
        copy_words<std::uint32_t>(to, from,
                                  share_of(bytes / sizeof(std::uint32_t), thread, threads));
    else
        copy_words<std::byte>(to, from, share_of(bytes, thread, threads));
}

// Copies `bytes` by all threads of the grid.
__device__ inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
    const auto threads = static_cast<std::size_t>(blockDim.x);
    copy_share(to, from, bytes, blockIdx.x * threads + threadIdx.x, gridDim.x * threads);
}

// Copies `bytes` by all threads of this block.
__device__ inline void copy_by_block(std::byte* to, const std::byte* from, std::size_t bytes) {
    copy_share(to, from, bytes, threadIdx.x, blockDim.x);
}

// Returns how many blocks a kernel of each of the `ranks` that share a GPU may have, if it waits
// for the others' kernels. A rank may have two such kernels at a time, one that sends and one that
// receives. All of them must run at the same time, and a half of the GPU is left to what the ranks
// compute.
inline unsigned int blocks_of_rank(int ranks) {
    return std::clamp(device_limits().multiprocessors / (2 * static_cast<unsigned int>(ranks)), 1u,
                      static_cast<unsigned int>(max_blocks));
}

// The threads of a block that copies. A thread may then have 128 registers.
inline constexpr unsigned int max_copy_threads = 512;

// Returns the launch shape of a copy: blocks enough to keep a GPU's memory busy, few enough for the
// kernels of all `ranks` to run at the same time. On a CPU shape_on_cpu.
inline LaunchShape shape_of_copy(std::size_t bytes, int ranks) {
    const unsigned int most = blocks_of_rank(ranks);
    if (kernels_run_on_cpu)
        return shape_on_cpu(most);
    constexpr std::size_t threads = max_copy_threads, bytes_per_thread = 64;
    const std::size_t blocks =
        std::clamp<std::size_t>(bytes / (threads * bytes_per_thread), 1, most);
    return {dim3(static_cast<unsigned int>(blocks)), dim3(static_cast<unsigned int>(threads))};
}

}  // namespace ddp
