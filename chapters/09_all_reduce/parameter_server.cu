// A parameter server: rank 0 consumes the arrays of all other ranks, one after the other, and sums
// them in its output; then it broadcasts the sum.
//
//     1 ──▶ 0   x0 + x1            0 ──▶ 1
//     2 ──▶ 0   (x0 + x1) + x2     0 ──▶ 2
//     3 ──▶ 0   ... + x3           0 ──▶ 3
#include "07_broadcast/broadcast.hpp"
#include "07_broadcast/transfer.cuh"
#include "09_all_reduce/all_reduce.cuh"
#include "09_all_reduce/all_reduce.hpp"

namespace ddp {
namespace {

constexpr int server = 0;

// All threads of a block, on the server: adds this block's share of one array after the other.
template <class T>
__device__ bool sum_all(const Collective& collective, ReduceOp op, const Slice& share) {
    const PeersView& view = collective.view;
    const auto at = [&](std::byte* data) { return reinterpret_cast<T*>(data + share.begin); };
    T* output = at(view.result_of(view.rank, collective.record));
    const T* sum = at(view.data_of(view.rank, collective.record));
    for (int rank = 1; rank < view.world_size; rank++) {
        Neighbour worker{collective, rank};
        const int ranks = rank == view.world_size - 1 ? view.world_size : 0;
        const auto add = [&](std::byte* theirs) {
            add_array<T>(op, output, sum, at(theirs), column_range(share.bytes / sizeof(T)), ranks);
        };
        if (!worker.consume(1, share.bytes, add))
            return false;
        if (threadIdx.x == 0)
            worker.ack(1);
        sum = output;
    }
    return true;
}

template <class T>
__global__ void sum_on_server(const __grid_constant__ Collective collective, ReduceOp op,
                              std::size_t count) {
    const Slice share = block_share({0, count * sizeof(T)});
    bool goes_on = threadIdx.x != 0 || begin_collective(collective);
    if (collective.view.rank == server) {
        goes_on = sum_all<T>(collective, op, share) && goes_on;
    } else if (threadIdx.x == 0) {
        // A worker posts its array, and waits until the server has read it.
        Neighbour to{collective, server};
        goes_on = goes_on && to.post(1) && to.wait_for_ack(1);
    }
    if (threadIdx.x == 0 && goes_on)
        end_block(collective);
}

}  // namespace

void parameter_server_all_reduce(Peers& peers, const Call& call, Stream& stream) {
    if (peers.view().world_size == 1)  // there is no rank to serve
        return two_shot_all_reduce(peers, call, stream);
    Call sum = call;
    sum.operation = "sum on server";
    with_type(call.type, [&]<class T>() {
        launch_collective(peers, sum, stream, shape_of_transfer(peers, call.bytes()),
                          sum_on_server<T>, *call.op, call.count);
    });
    Call broadcast = call;
    broadcast.kind = OperationKind::broadcast;
    broadcast.peer = server;
    broadcast.input = call.output;
    broadcast.op.reset();
    linear_broadcast(peers, broadcast, stream);
}

}  // namespace ddp
