#pragma once
// What the kernels of all collectives have in common: telling the others what is begun, checking
// that they have begun the same, and passing on how far the data has come.
//
//     __global__ void some_kernel(Collective collective, ...) {
//         if (threadIdx.x == 0)
//             begin_collective(collective);
//         ... one thread: meet(collective, peer), wait_for_ready(...); all threads: copy or add;
//         ... one thread: tell_ready(...) or tell_acknowledged(...);
//         end_collective(collective);   // all threads
//     }
//
// A rank must not end before all who read or write its data have done so.
#include <cuda/atomic>

#include "06_messages/wait.cuh"

namespace ddp {

// Steps of an operation are counted from 1, and mean nothing to the operations after it.
__device__ inline std::uint64_t mark_of(const Collective& collective, std::uint64_t step) {
    constexpr int bits_of_steps = 32;
    return (collective.number << bits_of_steps) + step;
}

// What rank `r` has begun with the number of this collective.
__device__ inline OperationRecord& record_of(const Collective& collective, int r) {
    return collective.view.control[r]->collective_state.records[collective.number % 2];
}

// What rank `r` has told this one of its operation number `number`.
__device__ inline PostedCall& begun_of(const Collective& collective, int r, std::uint64_t number) {
    return collective.view.own().collective_state.posted_calls[r][number % 2];
}
// Where rank `r` has the data of this collective, once they have met.
__device__ inline const BufferOffsets& place_of(const Collective& collective, int r) {
    return begun_of(collective, r, collective.number);
}

// One thread. Waits until rank `peer` has begun its operation number `number`, or a later one.
__device__ inline bool wait_for_begun(Collective& collective, int peer, std::uint64_t number) {
    std::uint64_t& posted_calls = begun_of(collective, peer, number).number;
    return wait_until(collective.view, collective.record, peer,
                      [&] { return load_acquire(posted_calls) >= number; });
}

// One thread of each block. No rank is ahead of another by more than one operation: what it has
// left behind in the last but one may still be read, and is overwritten now.
__device__ inline bool wait_for_last_but_one(Collective& collective) {
    const PeersView& view = collective.view;
    for (int r = 0; r < view.world_size; r++)
        if (view.control[r] != nullptr && !wait_for_begun(collective, r, collective.number - 1))
            return false;
    return true;
}

// One thread. Writes down what this rank has begun, in another one's memory or its own.
__device__ inline void tell_begun(const Collective& collective, CollectiveState& there) {
    PostedCall& posted_calls = there.posted_calls[collective.view.rank][collective.number % 2];
    posted_calls.offset = collective.record.offset;
    posted_calls.result = collective.record.result;
    posted_calls.call = collective.call;
    store_release(posted_calls.number, collective.number);
}

// One thread of each block. Tells every rank of this host what this rank has begun. False if the
// run fails.
__device__ inline bool begin_collective(Collective& collective) {
    const PeersView& view = collective.view;
    if (!begin_operation(view, collective.record))
        return false;
    if (blockIdx.x != 0)
        return true;
    if (!wait_for_last_but_one(collective))
        return false;
    copy_record(record_of(collective, view.rank), collective.record);
    for (int r = 0; r < view.world_size; r++)
        if (view.control[r] != nullptr)
            tell_begun(collective, view.control[r]->collective_state);
    return true;
}

// One thread. Waits until ready(), which is up to rank `peer`. If time is up, a rank that has not
// come at all is more to blame than the peer, which may be waiting for it, too.
template <class Ready>
__device__ bool wait_together(Collective& collective, int peer, Ready ready) {
    const PeersView& view = collective.view;
    return wait_or_blame(view, collective.record, ready, [&] {
        for (int r = 0; r < view.world_size; r++)
            if (view.control[r] != nullptr && r != view.rank &&
                load_acquire(begun_of(collective, r, collective.number).number) < collective.number)
                return r;
        return peer;
    });
}

// One thread. Waits until rank `peer` has begun its next operation, and compares: false if it is
// another one than ours, which is then reported, or if the run fails. The fingerprint has come with
// the news; the record would have to be fetched from the peer's memory.
__device__ inline bool handshake(Collective& collective, int peer) {
    if (!wait_for_begun(collective, peer, collective.number))
        return false;
    if (begun_of(collective, peer, collective.number).call == collective.call)
        return true;
    report_problem(collective.view, Problem::mismatch, collective.record, peer,
                   record_of(collective, peer), Progress::under_way);
    return false;
}

// One thread of a block, which speaks for its block. What the block has written before it tells is
// seen by whoever has waited for it.
__device__ inline void tell_ready(const Collective& collective, int peer, std::uint64_t step) {
    CollectiveState& there = collective.view.control[peer]->collective_state;
    store_release(there.ready[collective.view.rank][blockIdx.x].value, mark_of(collective, step));
}
__device__ inline void tell_acknowledged(const Collective& collective, int peer,
                                         std::uint64_t step) {
    CollectiveState& there = collective.view.control[peer]->collective_state;
    store_release(there.acknowledged[collective.view.rank][blockIdx.x].value,
                  mark_of(collective, step));
}
__device__ inline bool wait_for_ready(Collective& collective, int peer, std::uint64_t step) {
    std::uint64_t& ready = collective.view.own().collective_state.ready[peer][blockIdx.x].value;
    return wait_together(collective, peer,
                         [&] { return load_acquire(ready) >= mark_of(collective, step); });
}
__device__ inline bool wait_for_acknowledged(Collective& collective, int peer, std::uint64_t step) {
    std::uint64_t& acknowledged =
        collective.view.own().collective_state.acknowledged[peer][blockIdx.x].value;
    return wait_together(collective, peer,
                         [&] { return load_acquire(acknowledged) >= mark_of(collective, step); });
}

// One thread of each block, when the block has done its work. The last one writes down that the
// rank has ended.
__device__ inline void end_block(const Collective& collective) {
    CollectiveState& own = collective.view.own().collective_state;
    cuda::atomic_ref<unsigned int, cuda::thread_scope_system> blocks(own.blocks);
    if (blocks.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1) {
        own.blocks = 0;
        end_operation(collective.view);
    }
}

// The same for all threads of the block together.
__device__ inline void end_collective(const Collective& collective) {
    __syncthreads();
    if (threadIdx.x == 0)
        end_block(collective);
}

}  // namespace ddp
