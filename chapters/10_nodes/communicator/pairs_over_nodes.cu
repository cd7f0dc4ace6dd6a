#include "10_nodes/communicator/pairs_over_nodes.hpp"

#include "06_messages/support/copy.cuh"
#include "10_nodes/network/fifo.cuh"

namespace ddp {
namespace {

// ---- On the device. One block.

__device__ std::size_t slice_at(std::size_t begin, std::size_t bytes) {
    return bytes - begin < slot_bytes ? bytes - begin : slot_bytes;
}

__global__ void send_over_nodes(const __grid_constant__ Collective call,
                                const __grid_constant__ FifoSide side, std::byte* data,
                                std::size_t bytes) {
    __shared__ std::byte* slot;
    __shared__ bool has_begun;
    FifoEnd to;
    if (threadIdx.x == 0) {
        to = end_to_fill(side);
        has_begun = begin_operation(call.view, call.record) && send_header(call, to);
    }
    __syncthreads();
    for (std::size_t begin = 0; has_begun && begin < bytes; begin += slot_bytes) {
        if (threadIdx.x == 0)
            slot = slot_to_fill(call, to);
        __syncthreads();
        if (slot == nullptr)
            return;
        copy_by_block(slot, data + begin, slice_at(begin, bytes));
        __syncthreads();
        if (threadIdx.x == 0)
            publish(to, slice_at(begin, bytes));
    }
    if (threadIdx.x == 0 && has_begun && wait_until_emptied(call, to))
        end_operation(call.view);
}

__global__ void receive_over_nodes(const __grid_constant__ Collective call,
                                   const __grid_constant__ FifoSide side, std::byte* data,
                                   std::size_t bytes) {
    __shared__ const std::byte* slot;
    __shared__ bool has_begun;
    FifoEnd from;
    if (threadIdx.x == 0) {
        from = end_to_empty(side);
        grant(from, 1 + (bytes + slot_bytes - 1) / slot_bytes);
        has_begun = begin_operation(call.view, call.record) &&
                    receive_header(call, from, [&](const OperationRecord& theirs) {
                        return theirs.count == call.record.count && theirs.type == call.record.type;
                    });
    }
    __syncthreads();
    for (std::size_t begin = 0; has_begun && begin < bytes; begin += slot_bytes) {
        if (threadIdx.x == 0)
            slot = slot_to_empty(call, from);
        __syncthreads();
        if (slot == nullptr)
            return;
        copy_by_block(data + begin, slot, slice_at(begin, bytes));
        __syncthreads();
        if (threadIdx.x == 0)
            return_slot(from);
    }
    if (threadIdx.x == 0 && has_begun)
        end_operation(call.view);
}

}  // namespace

// ---- On the host

PairsOverNodes::PairsOverNodes(Peers& peers, NetworkProxy& proxy, const Placement& placement)
    : peers_(peers) {
    constexpr int channel_of_pairs = 2;
    for (const int rank : placement.numbers) {
        if (peers.index_of(rank) >= 0)
            continue;
        to_[rank].side = {proxy.channel_to(rank, channel_of_pairs, SendIsDone::receiver_has_it),
                          rank, nullptr};
        from_[rank].side = {proxy.channel_from(rank, channel_of_pairs), rank, nullptr};
    }
}

void PairsOverNodes::launch(TransferKernel kernel, const Call& call, Direction& direction,
                            void* data, Stream& stream) {
    stream.wait(direction.last);
    launch_cooperative(stream, kernels_run_on_cpu ? shape_on_cpu(1) : LaunchShape(1, 512), kernel,
                       Collective{peers_.view(), peers_.next_record(call)}, direction.side,
                       static_cast<std::byte*>(data), call.bytes());
    direction.last.record(stream);
    peers_.enqueued(stream);
}

void PairsOverNodes::send(const Call& call, Stream& stream) {
    launch(send_over_nodes, call, to_.at(call.peer), const_cast<void*>(call.input), stream);
}

void PairsOverNodes::receive(const Call& call, Stream& stream) {
    launch(receive_over_nodes, call, from_.at(call.peer), call.output, stream);
}

}  // namespace ddp
