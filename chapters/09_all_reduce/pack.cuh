#pragma once
// A pack is the neighbouring elements that one thread loads at once: 16 bytes on a GPU, a cache
// line on a CPU. With 128 bytes the compiler keeps sums on the stack rather than in registers.
#include <cstddef>
#include <cstdint>

#include "02_kernels/reduction.hpp"
#include "06_messages/support/copy.cuh"
#include "common/gpu/gpu.hpp"

namespace ddp {

inline constexpr std::size_t pack_bytes = kernels_run_on_cpu ? 64 : 16;

template <class T>
struct alignas(16) Pack {
    static constexpr std::size_t size = pack_bytes / sizeof(T);
    T values[size];
};

// Returns whether Packs can be read and written there.
__device__ inline bool is_aligned(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}

// One more rank's elements into their sum, and its end: of one element, and of a pack.
template <ReduceOp op, class T>
__device__ void add_to(T& sum, const T& own) {
    sum = combine<op>(sum, own);
}
template <ReduceOp op, class T>
__device__ void add_to(Pack<T>& sum, const Pack<T>& own) {
    for (std::size_t i = 0; i < Pack<T>::size; i++)
        sum.values[i] = combine<op>(sum.values[i], own.values[i]);
}
template <ReduceOp op, class T>
__device__ void finish_sum(T& sum, int ranks) {
    sum = finish<op>(sum, ranks);
}
template <ReduceOp op, class T>
__device__ void finish_sum(Pack<T>& sum, int ranks) {
    for (std::size_t i = 0; i < Pack<T>::size; i++)
        sum.values[i] = finish<op>(sum.values[i], ranks);
}

// All threads of a block: to[i] = op(theirs[i], own[i]), or just theirs[i] unless `is_sum`.
template <ReduceOp op, class Element>
__device__ void receive_elements(void* to, const void* theirs, const void* own, std::size_t count,
                                 bool is_sum, int divide_by) {
    auto* target = static_cast<Element*>(to);
    const GridRange columns = column_range(count);
    const std::size_t step = columns.step;
    by_several<4>(columns, [&]<std::size_t n>(std::size_t i) {
        Element values[n];
        for (std::size_t k = 0; k < n; k++)
            values[k] = static_cast<const Element*>(theirs)[i + k * step];
        if (is_sum) {
            Element mine[n];  // copies, which are loaded as a whole
            for (std::size_t k = 0; k < n; k++)
                mine[k] = static_cast<const Element*>(own)[i + k * step];
            for (std::size_t k = 0; k < n; k++)
                add_to<op>(values[k], mine[k]);
        }
        for (std::size_t k = 0; k < n; k++) {
            if (divide_by > 1)
                finish_sum<op>(values[k], divide_by);
            target[i + k * step] = values[k];
        }
    });
}

// Receives a slice in Packs. Leftover elements, and slices that aren't aligned, go one by one.
template <class T>
__device__ void receive_slice(ReduceOp op, T* to, const T* theirs, const T* own, std::size_t count,
                              bool is_sum, int divide_by) {
    const std::size_t packs =
        is_aligned(to) && is_aligned(theirs) && is_aligned(own) ? count / Pack<T>::size : 0;
    const std::size_t done = packs * Pack<T>::size;
    with_op(op, [&]<ReduceOp o>() {
        receive_elements<o, Pack<T>>(to, theirs, own, packs, is_sum, divide_by);
        receive_elements<o, T>(to + done, theirs + done, own + done, count - done, is_sum,
                               divide_by);
    });
}

// One step of the sum of arrays, by several threads, each with its `range`: to[i] = op(sum[i],
// own[i]), and the end of it once `ranks` have been added (0: not yet).
template <class T>
__device__ void add_array(ReduceOp op, T* to, const T* sum, const T* own, GridRange range,
                          int ranks) {
    with_op(op, [&]<ReduceOp o>() {
        for (std::size_t i : range) {
            const T value = combine<o>(sum[i], own[i]);
            to[i] = ranks > 0 ? finish<o>(value, ranks) : value;
        }
    });
}

// On a CPU one file has these sums, support/sums_on_cpu.cpp, and the others call them: the loops of
// all types and operations take the compiler as long as all the rest. (For a GPU they become a part
// of each kernel.) `word` is extern or nothing.
#if !defined(DDP_CUDA)
#define DDP_ADD_ARRAY(word, T) \
    word template void add_array(ReduceOp, T*, const T*, const T*, GridRange, int);
#define DDP_ADD_ARRAYS(word)           \
    DDP_ADD_ARRAY(word, float)         \
    DDP_ADD_ARRAY(word, double)        \
    DDP_ADD_ARRAY(word, int)           \
    DDP_ADD_ARRAY(word, __half)        \
    DDP_ADD_ARRAY(word, __nv_bfloat16) \
    DDP_ADD_ARRAY(word, unsigned char)
DDP_ADD_ARRAYS(extern)
#endif

}  // namespace ddp
