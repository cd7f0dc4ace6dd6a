#pragma once
// The parts that the kernels of all all-reduces have in common: packs of elements, the sum over all
// ranks at once (two-shot, one-shot), one step of a sum (ring, host ring, parameter server), and
// the handshake and the exit barrier with all ranks.
#include <cstddef>
#include <cstdint>

#include "02_kernels/reduction.hpp"
#include "06_messages/support/link.cuh"
#include "07_broadcast/collective.cuh"
#include "09_all_reduce/all_reduce.hpp"
#include "common/gpu/rows.hpp"

namespace ddp {

// ---- Packs

// A pack is the neighbouring elements that one thread loads at once: 16 bytes on a GPU, a cache
// line on a CPU. With 128 bytes the compiler keeps sums on the stack rather than in registers.
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

// ---- The sum over all ranks at once

// All threads: skips `skip` T and reduces `count` Elements: sums those of all inputs, and writes
// each sum to all outputs. What the compiler knows of it:
//
//     op               what is done with two elements
//     known_inputs     how many arrays are added up; 0: only the run knows, by `input_count`
//     known_outputs    how many arrays get the sum; 0: only the run knows, by `output_count`
//     Element          what a thread loads at once: a Pack of T, or one T
template <ReduceOp op, int known_inputs, int known_outputs, class Element, class T>
__device__ void reduce_elements(const T* const* inputs, int input_count, T* const* outputs,
                                int output_count, std::size_t skip, std::size_t count) {
    const int from = known_inputs > 0 ? known_inputs : input_count;
    const int to = known_outputs > 0 ? known_outputs : output_count;
    const GridRange elements = grid_range(count);
    const std::size_t step = elements.step;
    // Where there may be many arrays, a CPU takes eight lines of one, and then of the next: with
    // one line of each in turn, 16 arrays took eight times as long as 14 (README.md).
    by_several<known_inputs == 0 ? 1 : 8 / known_inputs, known_inputs == 0 ? 8 : 1>(
        elements, [&]<std::size_t n>(std::size_t i) {
            Element sums[n];
            for (std::size_t k = 0; k < n; k++)
                sums[k] = reinterpret_cast<const Element*>(inputs[0] + skip)[i + k * step];
            for (int j = 1; j < from; j++) {
                Element next[n];  // copies, which are loaded as a whole
                for (std::size_t k = 0; k < n; k++)
                    next[k] = reinterpret_cast<const Element*>(inputs[j] + skip)[i + k * step];
                for (std::size_t k = 0; k < n; k++)
                    add_to<op>(sums[k], next[k]);
            }
            for (std::size_t k = 0; k < n; k++) {
                finish_sum<op>(sums[k], from);
                for (int j = 0; j < to; j++)
                    reinterpret_cast<Element*>(outputs[j] + skip)[i + k * step] = sums[k];
            }
        });
}

// Reduces Packs of `ranks` inputs to one output or `to_all`, as many. For the usual numbers of
// ranks the loops over them are unrolled: all loads of a sum are then under way at once, and the
// sum stays in registers, which makes three times the speed on a CPU.
template <ReduceOp op, bool to_all, class T>
__device__ void reduce_packs(const T* const* inputs, int ranks, T* const* outputs, std::size_t skip,
                             std::size_t count) {
    const auto reduce = [&]<int known>() {
        reduce_elements<op, known, to_all ? known : 1, Pack<T>>(inputs, ranks, outputs, ranks, skip,
                                                                count);
    };
    switch (ranks) {
        case 2:
            return reduce.template operator()<2>();
        case 3:
            return reduce.template operator()<3>();
        case 4:
            return reduce.template operator()<4>();
        case 8:
            return reduce.template operator()<8>();
        default:
            return reduce.template operator()<0>();
    }
}

// All threads: writes the sum of inputs[0], inputs[1], ..., of all `ranks` in this order, to
// outputs[0] or `to_all`, as many, for the elements of `chunk`: in Packs if everything is aligned,
// one by one otherwise.
template <bool to_all, class T>
__device__ void reduce_chunk(ReduceOp op, const T* const* inputs, int ranks, T* const* outputs,
                             Chunk chunk, bool are_aligned) {
    const std::size_t packs = are_aligned ? chunk.size / Pack<T>::size : 0;
    const std::size_t done = packs * Pack<T>::size;
    with_op(op, [&]<ReduceOp o>() {
        reduce_packs<o, to_all>(inputs, ranks, outputs, chunk.begin, packs);
        reduce_elements<o, 0, to_all ? 0 : 1, T>(inputs, ranks, outputs, ranks, chunk.begin + done,
                                                 chunk.size - done);
    });
}

// ---- One step of a sum

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

// ---- All ranks begin, and all have ended

// Returns the rank that comes j + 1 after this one in the ring. The last is this one itself.
__device__ inline int next_rank(const PeersView& view, int j) {
    return (view.rank + 1 + j) % view.world_size;
}

// One thread of each block: the handshake with all ranks, the next one first. This rank itself is
// the last: its call is also read from memory, where its first block writes it.
__device__ inline bool handshake_all(const Collective& collective) {
    for (int j = 0; j < collective.view.world_size; j++)
        if (!handshake(collective, next_rank(collective.view, j)))
            return false;
    return true;
}

// The time of this rank's transfers over the simulated link, which go one after the other.
struct LinkTime {
    std::uint64_t free_ns;       // when the last of them has left the port
    std::uint64_t arrival_ns{};  // when all have arrived

    // Waits until the next transfer could begin. False if the run fails meanwhile.
    __device__ bool transfer(const PeersView& view, int from, int to, std::size_t bytes) {
        const std::uint64_t arrival = arrival_over_link(view, from, to, bytes, free_ns);
        free_ns = arrival - view.link.latency_ns;
        arrival_ns = arrival > arrival_ns ? arrival : arrival_ns;
        return sleep_until(view, free_ns);
    }
};

// One thread: waits as long as `bytes` from each other rank need over the simulated link, before
// they are read where they lie. No bytes take no time.
__device__ inline bool fetch_over_link(const PeersView& view, std::size_t bytes) {
    if (view.link.bytes_per_ns == 0 || bytes == 0)
        return true;
    LinkTime time{device_clock_ns()};
    for (int j = 0; j < view.world_size - 1; j++)
        if (!time.transfer(view, next_rank(view, j), view.rank, bytes))
            return false;
    return sleep_until(view, time.arrival_ns);
}

// One thread of each block: tells every rank that this block has read its data and has written
// `bytes` to it; then waits until every rank's block has done the same.
__device__ inline bool exit_barrier(const Collective& collective, std::size_t bytes) {
    const PeersView& view = collective.view;
    CollectiveState& own = state_of(view.own());
    const bool has_link = view.link.bytes_per_ns > 0;
    LinkTime time{device_clock_ns()};
    for (int j = 0; j < view.world_size - 1; j++) {
        const int peer = next_rank(view, j);
        if (has_link && bytes > 0) {
            time.arrival_ns = 0;
            if (!time.transfer(view, view.rank, peer, bytes))
                return false;
            state_of(*view.control[peer]).arrival_ns[view.rank] = time.arrival_ns;
        }
        raise_acknowledged(collective, peer, 1);
    }
    for (int j = 0; j < view.world_size - 1; j++) {
        const int peer = next_rank(view, j);
        if (!wait_for_acknowledged(collective, peer, 1) ||
            (has_link && !sleep_until(view, own.arrival_ns[peer])))
            return false;
    }
    return true;
}

// ---- On a CPU

// On a CPU one file has these sums, support/sums_on_cpu.cpp, and the others call them: the loops of
// all types and operations take the compiler as long as all the rest. (For a GPU they become a part
// of each kernel.) `word` is extern or nothing.
#if !defined(DDP_CUDA)
#define DDP_ADD_ARRAY(word, T) \
    word template void add_array(ReduceOp, T*, const T*, const T*, GridRange, int);
#define DDP_SUMS_OF(word, T)                                                                    \
    DDP_ADD_ARRAY(word, T)                                                                      \
    word template void reduce_chunk<false, T>(ReduceOp, const T* const*, int, T* const*, Chunk, \
                                              bool);                                            \
    word template void reduce_chunk<true, T>(ReduceOp, const T* const*, int, T* const*, Chunk,  \
                                             bool);
#define DDP_SUMS(word)               \
    DDP_SUMS_OF(word, float)         \
    DDP_SUMS_OF(word, double)        \
    DDP_SUMS_OF(word, int)           \
    DDP_SUMS_OF(word, __half)        \
    DDP_SUMS_OF(word, __nv_bfloat16) \
    DDP_ADD_ARRAY(word, unsigned char)
DDP_SUMS(extern)
#endif

}  // namespace ddp
