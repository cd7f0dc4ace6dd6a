// Send and receive: one kernel on each side.
//
//     time   rank 0: send 1000 float             rank 1: receive 1000 float
//      │     write the record into              poll from[0].posted in its own
//      │     rank 1's from[0];                  control block
//      │     posted = n  (release) ───────────▶ sees n (acquire): the record is there
//      │     poll acknowledged[1]               compare count and type with its own
//      │                                        copy: rank 0's arena ──▶ destination
//      │     sees n (acquire) ◀──────────────── acknowledged[1] = n in rank 0's block (release)
//      ▼     ends: the data may be overwritten  ends
//
// The release makes the record visible before the flag, and the acknowledgement tells the sender
// that its data was read. Nothing else is needed.
#include <cuda/atomic>

#include "06_messages/peers.hpp"
#include "06_messages/support/copy.cuh"
#include "06_messages/support/link.cuh"
#include "06_messages/wait.cuh"

namespace ddp {
namespace {

// ---- On the device

// One thread: posts the record to rank `to`, and waits until that has acknowledged the data.
// `number` counts the sends to this receiver, from 1.
__global__ void send_kernel(const __grid_constant__ PeersView view,
                            const __grid_constant__ OperationRecord record, int to,
                            std::uint64_t number) {
    std::uint64_t& acknowledged = view.own().acknowledged[to];
    // The channel has room for one post; an earlier one may still be in it, from another stream.
    if (!begin_operation(view, record) || !wait_until(view, record, to, acknowledged, number - 1))
        return;
    Channel& channel = view.control[to]->from[view.rank];
    channel.record = record;
    channel.posted_ns = device_clock_ns();
    store_release(channel.posted, number);
    if (wait_until(view, record, to, acknowledged, number))
        end_operation(view);
}

// One thread of each block: waits for the sender's record, and compares it with this rank's. False
// if the run fails, or if the records differ.
__device__ bool wait_for_sender(const PeersView& view, const OperationRecord& record, int from,
                                std::uint64_t number) {
    Channel& channel = view.own().from[from];
    if (!wait_until(view, record, from, channel.posted, number))
        return false;
    if (channel.record.count == record.count && channel.record.type == record.type)
        return true;
    report_problem(view, Problem::mismatch, record, record.peer, channel.record,
                   PeerProgress::under_way);
    return false;
}

// One thread of the last block to end: acknowledges the data, once the simulated link would have
// delivered it.
__device__ void acknowledge_sender(const PeersView& view, int from, std::uint64_t number,
                                   std::size_t bytes, std::uint64_t begin_ns) {
    Channel& channel = view.own().from[from];
    channel.blocks = 0;
    if (view.link.bytes_per_ns > 0) {
        const std::uint64_t ready_ns = begin_ns > channel.posted_ns ? begin_ns : channel.posted_ns;
        if (!sleep_until(view, arrival_over_link(view, from, view.rank, bytes, ready_ns)))
            return;
    }
    store_release(view.control[from]->acknowledged[view.rank], number);
    end_operation(view);
}

// All threads copy `bytes` from the arena of rank `from` to `to`.
__global__ void receive_kernel(const __grid_constant__ PeersView view,
                               const __grid_constant__ OperationRecord record, int from,
                               std::uint64_t number, std::byte* to, std::size_t bytes) {
    __shared__ bool is_posted;
    const std::uint64_t begin_ns = device_clock_ns();
    if (threadIdx.x == 0)
        is_posted = begin_operation(view, record) && wait_for_sender(view, record, from, number);
    __syncthreads();
    if (!is_posted)
        return;
    Channel& channel = view.own().from[from];
    copy_bytes(to, view.data_of(from, channel.record), bytes);
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    // The block that counts itself last knows that all others have copied their shares.
    cuda::atomic_ref<unsigned int, cuda::thread_scope_system> blocks(channel.blocks);
    if (blocks.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1)
        acknowledge_sender(view, from, number, bytes, begin_ns);
}

}  // namespace

// ---- On the host

void Peers::send(const Call& call, Stream& stream) {
    const int to = require_peer(call.peer, "send to");
    launch_cooperative(stream, {1, 1}, send_kernel, view_, next_record(call), to, ++sends_[to]);
    enqueued(stream);
}

void Peers::receive(const Call& call, Stream& stream) {
    const int from = require_peer(call.peer, "receive from");
    const std::size_t bytes = call.bytes();
    launch_cooperative(stream, shape_of_transfer(bytes, view_.ranks_on_device), receive_kernel,
                       view_, next_record(call), from, ++receives_[from],
                       bytes == 0 ? nullptr : static_cast<std::byte*>(call.output), bytes);
    enqueued(stream);
}

}  // namespace ddp
