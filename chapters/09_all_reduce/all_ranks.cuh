#pragma once
// What the kernels share that read from all ranks at once.
#include "07_broadcast/collective.cuh"
#include "09_all_reduce/chunk.hpp"
#include "09_all_reduce/pack.cuh"

namespace ddp {

// The j-th rank after this one; this one itself is the last.
__device__ inline int next_rank(const PeersView& view, int j) {
    return (view.rank + 1 + j) % view.world_size;
}

// One thread of each block: waits until all ranks have come, the next one first. This one is the
// last: its record, too, is read from memory, where its first block writes it.
__device__ inline bool handshake_all(Collective& collective) {
    for (int j = 0; j < collective.view.world_size; j++)
        if (!handshake(collective, next_rank(collective.view, j)))
            return false;
    return true;
}

// The time of this rank's transfers over the simulated link, one after the other.
struct LinkTime {
    std::uint64_t free_ns;       // when the last of them has left the port
    std::uint64_t arrival_ns{};  // when all have arrived

    // Until rank `to` could begin its next one. False if the run fails meanwhile.
    __device__ bool transfer(const PeersView& view, int from, int to, std::size_t bytes) {
        const std::uint64_t arrival = arrival_over_link(view, from, to, bytes, free_ns);
        free_ns = arrival - view.link.latency_ns;
        arrival_ns = arrival > arrival_ns ? arrival : arrival_ns;
        return sleep_until(view, free_ns);
    }
};

// One thread: the data is where it is, so over the simulated link the others' chunks take their
// time before they are read. An empty one takes none.
__device__ inline bool fetch_over_link(const PeersView& view, std::size_t bytes) {
    if (view.link.bytes_per_ns == 0 || bytes == 0)
        return true;
    LinkTime time{device_clock_ns()};
    for (int j = 0; j < view.world_size - 1; j++)
        if (!time.transfer(view, next_rank(view, j), view.rank, bytes))
            return false;
    return sleep_until(view, time.arrival_ns);
}

// All threads: `count` Elements, which are Packs of T or single ones, `skip` T into everything. How
// many inputs and outputs there are the compiler knows, or it is 0 and the run knows.
template <ReduceOp op, int known_inputs, int known_outputs, class Element, class T>
__device__ void reduce_elements(const T* const* inputs, int input_count, T* const* outputs,
                                int output_count, std::size_t skip, std::size_t count) {
    const int from = known_inputs > 0 ? known_inputs : input_count;
    const int to = known_outputs > 0 ? known_outputs : output_count;
    for (std::size_t i : grid_range(count)) {
        Element sum = reinterpret_cast<const Element*>(inputs[0] + skip)[i];
        for (int j = 1; j < from; j++) {
            const Element next = reinterpret_cast<const Element*>(inputs[j] + skip)[i];
            add_to<op>(sum, next);  // of a copy, which is loaded as a whole
        }
        finish_sum<op>(sum, from);
        for (int j = 0; j < to; j++)
            reinterpret_cast<Element*>(outputs[j] + skip)[i] = sum;
    }
}

// Packs of `ranks` inputs, to one output or to as many. For the usual numbers of ranks the loops
// over them are unrolled: all loads of a sum are then under way at once, and the sum stays in
// registers, which makes three times the speed on a CPU.
template <ReduceOp op, class T>
__device__ void reduce_packs(const T* const* inputs, int ranks, T* const* outputs, int output_count,
                             std::size_t skip, std::size_t count) {
    const auto reduce = [&]<int known>() {
        if (output_count == 1)
            reduce_elements<op, known, 1, Pack<T>>(inputs, ranks, outputs, 1, skip, count);
        else
            reduce_elements<op, known, known, Pack<T>>(inputs, ranks, outputs, output_count, skip,
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

// All threads: the sum of inputs[0], inputs[1], ..., in this order, goes to all outputs, one or as
// many; of the elements of `chunk`. Where not everything is aligned for Packs they go one by one.
template <class T>
__device__ void reduce_chunk(ReduceOp op, const T* const* inputs, int input_count,
                             T* const* outputs, int output_count, Chunk chunk, bool are_aligned) {
    const std::size_t packs = are_aligned ? chunk.size / Pack<T>::size : 0;
    const std::size_t done = packs * Pack<T>::size;
    with_op(op, [&]<ReduceOp o>() {
        reduce_packs<o>(inputs, input_count, outputs, output_count, chunk.begin, packs);
        reduce_elements<o, 0, 0, T>(inputs, input_count, outputs, output_count, chunk.begin + done,
                                    chunk.size - done);
    });
}

}  // namespace ddp
