#pragma once
// Copies by the threads of a kernel.
#include <cstddef>
#include <cstdint>

#include "common/gpu/rows.hpp"

namespace ddp {

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

}  // namespace ddp
