#pragma once
// The arrays of the ranks of one node, which lie in memory that each of their kernels can read and
// write: the first and the last stage of an all-reduce on two levels. Local rank 1 of three:
//
//     stage 1, sum     a[2] + a[0] + a[1] -> slot       from the next rank round to itself
//     stage 3, give    slot -> a[2], a[0], a[1]
#include "06_messages/support/copy.cuh"
#include "07_broadcast/collective.hpp"
#include "09_all_reduce/all_reduce.cuh"
#include "10_nodes/ring_schedule.cuh"

namespace ddp {

// These arrays, in the order in which they are summed; in memory that the block shares.
template <class T>
struct LocalArrays {
    const T* inputs[max_peers];
    T* outputs[max_peers];
    const T* slices[max_peers];  // where the slice at hand begins in `inputs`
    int ranks;                   // of this node
    bool are_aligned;

    // One thread, after the handshakes: where the arrays are.
    __device__ void find(const Collective& collective, const RingPlan& plan) {
        const PeersView& view = collective.view;
        ranks = plan.local_end - plan.local_begin;
        are_aligned = true;
        const int next = view.rank + 1 - plan.local_begin;
        for (int j = 0; j < ranks; j++) {
            const int peer = plan.local_begin + (next + j) % ranks;
            const BufferOffsets& offsets = offsets_of(collective, peer);
            inputs[j] = reinterpret_cast<const T*>(view.data_of(peer, offsets));
            outputs[j] = reinterpret_cast<T*>(view.result_of(peer, offsets));
            are_aligned = are_aligned && is_aligned(inputs[j]);
        }
    }

    // All threads: slot = the sum of a slice of the node's arrays. (An average divides the whole
    // sum, not this one.)
    __device__ void sum(ReduceOp op, const RingSlice& slice, T* slot) {
        const std::size_t skip = slice.chunk.begin + slice.begin;
        for (std::size_t j : column_range(static_cast<std::size_t>(ranks)))
            slices[j] = inputs[j] + skip;
        __syncthreads();
        reduce_chunk<false>(op == ReduceOp::average ? ReduceOp::sum : op, slices, ranks, &slot,
                            {0, slice.size}, are_aligned);
    }

    // All threads: writes a slice to all arrays of the node.
    __device__ void give(const RingSlice& slice, const T* sum) const {
        for (int j = 0; j < ranks; j++)
            copy_slice(outputs[j] + slice.chunk.begin + slice.begin, sum, slice.size);
    }
    __device__ static void copy_slice(T* to, const T* from, std::size_t size) {
        copy_by_block(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from),
                      size * sizeof(T));
    }
};

// One thread: waits until no rank of this node reads or writes this rank's arrays any more.
__device__ inline bool leave_node(const Collective& collective, const RingPlan& plan) {
    const int self = collective.view.rank;
    for (int r = plan.local_begin; r < plan.local_end; r++)
        if (r != self)
            raise_acknowledged(collective, r, 1);
    for (int r = plan.local_begin; r < plan.local_end; r++)
        if (r != self && !wait_for_acknowledged(collective, r, 1))
            return false;
    return true;
}

}  // namespace ddp
