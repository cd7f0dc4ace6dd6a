#pragma once
// Kernels fill and empty FIFOs.
//
// The first thing that an operation says along a FIFO is its record. So the two sides find out at
// once if they do not do the same; and a rank that times out can report its peer's last operation.
#include "06_messages/wait.cuh"
#include "10_nodes/network/fifo.hpp"

namespace ddp {

// The one side of a FIFO, as one thread of a kernel holds it.
struct FifoEnd : FifoSide {
    std::uint64_t next = 0;      // the slot to be filled or emptied
    bool is_peer_there = false;  // it is known to have begun this operation
};

// One thread. Ends begin where the operation before has left them. (Of the rank that empties what
// we fill we hear nothing but that; others know better why it does not.)
__device__ inline FifoEnd end_to_fill(const FifoSide& side) {
    return {side, side.fifo->filled.value, true};
}
__device__ inline FifoEnd end_to_empty(const FifoSide& side) {
    return {side, side.fifo->emptied.value, false};
}

// A longer wait is for data on its way over a slow network, or for a rank that computes: from then
// on others can have the core.
inline constexpr std::uint64_t spin_ns = 200'000;

// One thread. Waits until the peer has raised `flag` to `value`. A rank that waits for one that
// has not even begun knows best what is wrong, and reports first.
__device__ inline bool wait_at(const Collective& collective, const FifoEnd& end,
                               std::uint64_t& flag, std::uint64_t value) {
    const PeersView& view = collective.view;
    const std::uint64_t longer_ns = end.is_peer_there ? view.timeout_ns / 10 : 0;
    const std::uint64_t begin_ns = device_clock_ns();
    const auto is_ready = [&] {
        if (load_relaxed(flag) >= value)
            return true;
        if (device_clock_ns() - begin_ns > spin_ns)
            __nanosleep(50'000);
        else if (!kernels_run_on_cpu)
            __nanosleep(3'000);  // a look goes to the host's memory, by the bus that others need
        return false;
    };
    const auto report = [&](Problem problem) {
        if (ControlBlock* other = end.control)
            report_problem(view, problem, collective.record, end.peer, other->current,
                           progress_of(*other));
        else
            report_problem(view, problem, collective.record, end.peer, end.fifo->last,
                           end.is_peer_there ? PeerProgress::under_way : PeerProgress::unknown);
    };
    return wait_or_report(view, view.timeout_ns + longer_ns, is_ready, report) &&
           load_acquire(flag) >= value;
}

// One thread. The slot to fill, once it is free, or to empty, once it is full; null if the run
// fails.
__device__ inline std::byte* slot_to_fill(const Collective& collective, const FifoEnd& end) {
    const std::uint64_t used = end.next < fifo_slots ? 0 : end.next - fifo_slots + 1;
    return wait_at(collective, end, end.fifo->emptied.value, used) ? end.fifo->slot(end.next)
                                                                   : nullptr;
}
__device__ inline std::byte* slot_to_empty(const Collective& collective, const FifoEnd& end) {
    return wait_at(collective, end, end.fifo->filled.value, end.next + 1) ? end.fifo->slot(end.next)
                                                                          : nullptr;
}

// One thread, when all threads of the block have done it.
__device__ inline void publish(FifoEnd& end, std::size_t bytes) {
    end.fifo->bytes[end.next % fifo_slots] = bytes;
    store_release(end.fifo->filled.value, ++end.next);
}
__device__ inline void return_slot(FifoEnd& end) {
    store_release(end.fifo->emptied.value, ++end.next);
}

// One thread. Waits until the other side has emptied all slots that were filled.
__device__ inline bool wait_until_emptied(const Collective& collective, const FifoEnd& end) {
    return wait_at(collective, end, end.fifo->emptied.value, end.next);
}

// One thread. So many slots will be emptied: their bytes may come.
__device__ inline void grant(const FifoEnd& end, std::uint64_t slots) {
    store_release(end.fifo->wanted.value, end.next + slots);
}

// One thread. The beginning of an operation, on either side. False if the run fails.
__device__ inline bool send_header(const Collective& collective, FifoEnd& to) {
    std::byte* slot = slot_to_fill(collective, to);
    if (slot == nullptr)
        return false;
    publish_record(*reinterpret_cast<OperationRecord*>(slot), collective.record);
    publish(to, sizeof(OperationRecord));
    return true;
}
// Compares the record with what we do, by is_right(theirs). If it does not fit, that is reported.
template <class IsRight>
__device__ bool receive_header(const Collective& collective, FifoEnd& from, IsRight is_right) {
    std::byte* slot = slot_to_empty(collective, from);
    if (slot == nullptr)
        return false;
    OperationRecord& theirs = from.fifo->last;
    copy_record(theirs, *reinterpret_cast<OperationRecord*>(slot));
    from.is_peer_there = true;
    if (!is_right(theirs)) {
        report_problem(collective.view, Problem::mismatch, collective.record, from.peer, theirs,
                       PeerProgress::under_way);
        return false;
    }
    return_slot(from);
    return true;
}

}  // namespace ddp
