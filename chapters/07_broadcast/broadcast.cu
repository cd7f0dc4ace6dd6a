// The four broadcasts are one kernel. Where a rank's data comes from and where it goes is its
// Topology; how it is cut is the Plan. For rank 0 as root of four:
//
//     linear, all at once      tree                 chain
//     0 ──▶ 1                  0 ──▶ 2 ──▶ 3        0 ──▶ 1 ──▶ 2 ──▶ 3
//     0 ──▶ 2                  0 ──▶ 1
//     0 ──▶ 3
//     1 slice, or many         1 slice              many slices
//
// In each step a rank consumes one slice from its parent, and posts it to its children.
#include "07_broadcast/broadcast.hpp"

#include <algorithm>
#include <stdexcept>

#include "07_broadcast/topology.hpp"
#include "07_broadcast/transfer.cuh"

namespace ddp {
namespace {

// The data's slices, and the order in which the children are served.
struct Plan {
    int slices = 1;        // passed on one by one
    bool in_turn = false;  // a child is served when the one before it has read all
    std::size_t bytes = 0;
};

// ---- On the device

// One thread of a block, which has slice `step`: posts it to the children.
__device__ bool serve_children(const Collective& collective, const Topology& topology,
                               const Plan& plan, int step) {
    for (int i = 0; i < topology.children; i++) {
        Neighbour child{collective, topology.child[i]};
        if (!child.post(static_cast<std::uint64_t>(step)) ||
            (plan.in_turn && !child.wait_for_ack(static_cast<std::uint64_t>(step))))
            return false;
    }
    return true;
}

// One thread of a block. Exit barrier: waits until all children have read the last slice.
__device__ bool wait_for_children(const Collective& collective, const Topology& topology,
                                  const Plan& plan) {
    for (int i = 0; i < topology.children; i++)
        if (!Neighbour{collective, topology.child[i]}.wait_for_ack(
                static_cast<std::uint64_t>(plan.slices)))
            return false;
    return true;
}

__global__ void broadcast_kernel(const __grid_constant__ Collective collective,
                                 const __grid_constant__ Topology topology, Plan plan) {
    const PeersView& view = collective.view;
    std::byte* data = view.data_of(view.rank, collective.record);
    Neighbour parent{collective, topology.parent};
    const bool has_parent = topology.parent >= 0;
    bool all_came = threadIdx.x != 0 || begin_collective(collective);
    for (int step = 1; step <= plan.slices; step++) {
        const auto number = static_cast<std::uint64_t>(step);
        const Slice share = block_share(slice_of(plan.bytes, static_cast<std::size_t>(plan.slices),
                                                 static_cast<std::size_t>(step - 1)));
        const auto copy = [&](const std::byte* theirs) {
            copy_by_block(data + share.begin, theirs + share.begin, share.bytes);
        };
        // Consume: copy this block's share of the slice out of the parent's arena.
        if (has_parent && !parent.consume(number, share.bytes, copy))
            return;
        if (threadIdx.x != 0)
            continue;
        // Ack: after the last slice the parent may end, or serve the next child.
        if (has_parent && step == plan.slices)
            parent.ack(number);
        // Post: the children can read the slice here.
        all_came = all_came && serve_children(collective, topology, plan, step);
    }
    if (threadIdx.x == 0 && all_came && wait_for_children(collective, topology, plan))
        end_block(collective);
}

// ---- On the host

using MakeTopology = Topology (*)(int rank, int ranks, int root);

void broadcast(Peers& peers, const std::string& operation, Call call, Stream& stream,
               MakeTopology make_topology, Plan plan) {
    call.operation = operation;
    const int root = require_root(peers, call);
    plan.bytes = call.bytes();
    const PeersView& view = peers.view();
    launch_collective(peers, call, stream, shape_of_transfer(peers, plan.bytes), broadcast_kernel,
                      make_topology(view.rank, view.world_size, root), plan);
}

}  // namespace

int default_slices(std::size_t bytes) {
    constexpr std::size_t slice = kernels_run_on_cpu ? 128 << 10 : 512 << 10, max_slices = 1024;
    return static_cast<int>(std::clamp<std::size_t>((bytes + slice - 1) / slice, 1, max_slices));
}

void linear_broadcast(Peers& peers, const Call& call, Stream& stream) {
    broadcast(peers, "linear broadcast", call, stream, linear_topology, {.in_turn = true});
}

void all_at_once_broadcast(Peers& peers, const Call& call, Stream& stream) {
    broadcast(peers, "all-at-once broadcast", call, stream, linear_topology,
              {.slices = default_slices(call.bytes())});
}

void tree_broadcast(Peers& peers, const Call& call, Stream& stream) {
    broadcast(peers, "tree broadcast", call, stream, tree_topology, {.in_turn = true});
}

void chain_broadcast(Peers& peers, const Call& call, Stream& stream, int slices) {
    if (slices < 1)
        throw std::invalid_argument("chain broadcast: the data cannot be cut into " +
                                    std::to_string(slices) + " slices; 1 is the least");
    // A rank that cuts the data differently is found out by its record.
    broadcast(peers, "chain broadcast (" + std::to_string(slices) + ")", call, stream,
              chain_topology, {.slices = slices});
}

void chain_broadcast(Peers& peers, const Call& call, Stream& stream) {
    chain_broadcast(peers, call, stream, default_slices(call.bytes()));
}

}  // namespace ddp
