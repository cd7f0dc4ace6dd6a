#pragma once
// The parts that the kernels of all collectives have in common: posting the call to the other
// ranks, checking that they have begun the same (the handshake), and raising and awaiting flags.
//
//     __global__ void some_kernel(const __grid_constant__ Collective collective, ...) {
//         if (threadIdx.x == 0)
//             begin_collective(collective);    // posts this rank's call to every rank
//         ... one thread: handshake(collective, peer), wait for its data; all threads: copy or add;
//         ... one thread: post, acknowledge (transfer.cuh has a Neighbour for this)
//         end_block(collective);               // one thread of each block
//     }
//
// A rank must not end before all ranks that read or write its data have done so: an exit barrier.
#include <cuda/atomic>

#include "06_messages/wait.cuh"
#include "07_broadcast/collective.hpp"

namespace ddp {

__device__ inline CollectiveState& state_of(ControlBlock& control) {
    return *reinterpret_cast<CollectiveState*>(control.room);
}

__device__ inline bool is_over_link(const Collective& collective) {
    return collective.view.link.bytes_per_ns > 0;
}

// Returns the number of the collective among those of the rank, from 1. A graph's arguments never
// change, and each launch of it needs the next numbers: there it follows the last collective that
// has ended.
__device__ inline std::uint64_t number_of(const Collective& collective) {
    return collective.number != 0 ? collective.number : state_of(collective.view.own()).ended + 1;
}

// Returns where the collective's half of a staging area begins. The next but one has the same.
__device__ inline std::size_t staging_half(const Collective& collective) {
    return number_of(collective) % 2 * Collectives::max_staged;
}

// Returns the time at which this block's last transfer over the simulated link has arrived. Only
// thread 0 of the block uses it.
__device__ inline std::uint64_t& link_time(const Collective& collective) {
    return state_of(collective.view.own()).link_ns[blockIdx.x];
}

// Returns the value of a flag in step `step`, from 1. It grows from collective to collective, so
// flags need not be reset.
__device__ inline std::uint64_t flag_value(const Collective& collective, std::uint64_t step) {
    constexpr int bits_of_steps = 32;
    return (number_of(collective) << bits_of_steps) + step;
}

// Returns the record of rank `r` in this collective.
__device__ inline OperationRecord& record_of(const Collective& collective, int r) {
    return state_of(*collective.view.control[r]).records[number_of(collective) % 2];
}

// Returns what rank `r` has posted to this one of collective `number`.
__device__ inline PostedCall& posted_call(const Collective& collective, int r,
                                          std::uint64_t number) {
    return state_of(collective.view.own()).posted_calls[r][number % 2];
}
// Returns the places of rank `r`'s data in this collective, once there was a handshake with it.
__device__ inline const BufferOffsets& offsets_of(const Collective& collective, int r) {
    return posted_call(collective, r, number_of(collective));
}

// ---- Beginning, and checking that all ranks have begun the same

// One thread. Waits until rank `peer` has begun collective `number`, or a later one.
__device__ inline bool wait_for_call(const Collective& collective, int peer, std::uint64_t number) {
    std::uint64_t& posted = posted_call(collective, peer, number).number;
    return wait_until(collective.view, collective.record, peer, posted, number);
}

// One thread. Waits until every rank of this node has begun the collective before this one. Calls
// are kept for two collectives: before number n overwrites that of n - 2, every rank must have
// begun n - 1, and so have stopped reading n - 2.
__device__ inline bool wait_for_previous(const Collective& collective) {
    const PeersView& view = collective.view;
    for (int r = 0; r < view.world_size; r++)
        if (!wait_for_call(collective, r, number_of(collective) - 1))
            return false;
    return true;
}

// One thread. Posts this rank's call to the rank (this one or another) whose state `there` is.
__device__ inline void post_call(const Collective& collective, CollectiveState& there) {
    PostedCall& posted = there.posted_calls[collective.view.rank][number_of(collective) % 2];
    posted.offset = collective.record.offset;
    posted.result = collective.record.result;
    posted.fingerprint = collective.record.fingerprint;
    store_release(posted.number, number_of(collective));
}

// Begins a collective: one thread of each block calls it, and that of the first block posts the
// call to every rank of this node. Returns false if the run fails.
__device__ inline bool begin_collective(const Collective& collective) {
    const PeersView& view = collective.view;
    if (is_over_link(collective))
        link_time(collective) = device_clock_ns();
    if (!begin_operation(view, collective.record))
        return false;
    if (blockIdx.x != 0)
        return true;
    if (!wait_for_previous(collective))
        return false;
    publish_record(record_of(collective, view.rank), collective.record);
    for (int r = 0; r < view.world_size; r++)
        post_call(collective, state_of(*view.control[r]));
    return true;
}

// One thread. Waits until rank `peer` has begun this collective, and compares the calls. Returns
// false if they differ, which is then reported, or if the run fails. Fingerprints are compared,
// because they come with the post; a record would have to be fetched from the peer's memory.
__device__ inline bool handshake(const Collective& collective, int peer) {
    if (!wait_for_call(collective, peer, number_of(collective)))
        return false;
    if (posted_call(collective, peer, number_of(collective)).fingerprint ==
        collective.record.fingerprint)
        return true;
    report_problem(collective.view, Problem::mismatch, collective.record,
                   collective.view.control[peer]->rank, record_of(collective, peer),
                   PeerProgress::under_way);
    return false;
}

// ---- Flags. Block b works with block b of the other rank, and raises or awaits its flag.

// One thread. Waits until rank `peer` has raised `flag` to `value`. A time-out names the first rank
// that has not begun this collective, if there is one: the peer may be waiting for it as well.
__device__ inline bool wait_for_peer(const Collective& collective, int peer, std::uint64_t& flag,
                                     std::uint64_t value) {
    const PeersView& view = collective.view;
    return wait_for_flag(view, collective.record, flag, value, [&] {
        for (int r = 0; r < view.world_size; r++)
            if (r != view.rank &&
                load_acquire(posted_call(collective, r, number_of(collective)).number) <
                    number_of(collective))
                return r;
        return peer;
    });
}

// One thread of a block, for its block. All that the block has written before is visible to the
// thread that waits for the flag.
__device__ inline void raise_posted(const Collective& collective, int peer, std::uint64_t step) {
    CollectiveState& there = state_of(*collective.view.control[peer]);
    store_release(there.posted[collective.view.rank][blockIdx.x].value,
                  flag_value(collective, step));
}
__device__ inline void raise_acknowledged(const Collective& collective, int peer,
                                          std::uint64_t step) {
    CollectiveState& there = state_of(*collective.view.control[peer]);
    store_release(there.acknowledged[collective.view.rank][blockIdx.x].value,
                  flag_value(collective, step));
}
__device__ inline bool wait_for_posted(const Collective& collective, int peer, std::uint64_t step) {
    std::uint64_t& posted = state_of(collective.view.own()).posted[peer][blockIdx.x].value;
    return wait_for_peer(collective, peer, posted, flag_value(collective, step));
}
__device__ inline bool wait_for_acknowledged(const Collective& collective, int peer,
                                             std::uint64_t step) {
    std::uint64_t& acknowledged =
        state_of(collective.view.own()).acknowledged[peer][blockIdx.x].value;
    return wait_for_peer(collective, peer, acknowledged, flag_value(collective, step));
}

// ---- The end

// One thread of each block, when that has done its work. The last one writes down the rank's end.
__device__ inline void end_block(const Collective& collective) {
    CollectiveState& own = state_of(collective.view.own());
    cuda::atomic_ref<unsigned int, cuda::thread_scope_system> blocks(own.blocks);
    if (blocks.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1) {
        own.blocks = 0;
        own.ended = number_of(collective);
        end_operation(collective.view);
    }
}

}  // namespace ddp
