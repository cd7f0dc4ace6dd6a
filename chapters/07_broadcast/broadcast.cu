#include "07_broadcast/broadcast.hpp"

#include <algorithm>
#include <stdexcept>

#include "07_broadcast/topology.hpp"
#include "07_broadcast/transfer.cuh"

namespace ddp {
namespace {

// How the data goes along a route.
struct Plan {
    std::size_t bytes = 0;
    int slices = 1;        // passed on one by one
    bool in_turn = false;  // a child is served when the one before it has all
};

// ---- On the device

// One thread of a block, which has slice `step`.
__device__ bool serve_children(Collective& collective, const Topology& topology, const Plan& plan,
                               int step, std::uint64_t& now_ns) {
    for (int i = 0; i < topology.children; i++) {
        const int child = topology.child[i];
        if (!post(collective, child, step, now_ns) ||
            (plan.in_turn && !wait_until_acknowledged(collective, child, step, now_ns)))
            return false;
    }
    return true;
}

// One thread of a block. We end when all have taken what they get from us.
__device__ bool wait_for_children(Collective& collective, const Topology& topology,
                                  const Plan& plan, std::uint64_t& now_ns) {
    for (int i = 0; i < topology.children; i++)
        if (!wait_until_acknowledged(collective, topology.child[i], plan.slices, now_ns))
            return false;
    return true;
}

__global__ void broadcast_kernel(Collective collective, Topology topology, Plan plan) {
    const PeersView& view = collective.view;
    std::byte* data = view.data_of(view.rank, collective.record);
    std::uint64_t now_ns = link_time(collective);
    bool all_came = threadIdx.x != 0 || begin_collective(collective);
    for (int step = 1; step <= plan.slices; step++) {
        const Slice share = block_share(slice_of(plan.bytes, plan.slices, step - 1));
        const auto copy = [&](const std::byte* theirs) {
            copy_by_block(data + share.begin, theirs + share.begin, share.bytes);
        };
        if (topology.parent >= 0 &&
            !take(collective, topology.parent, step, share.bytes, now_ns, copy))
            return;
        if (threadIdx.x != 0)
            continue;
        if (topology.parent >= 0 && step == plan.slices)
            acknowledge(collective, topology.parent, step, now_ns);
        all_came = all_came && serve_children(collective, topology, plan, step, now_ns);
    }
    if (threadIdx.x == 0 && all_came && wait_for_children(collective, topology, plan, now_ns))
        end_block(collective);
}

// ---- On the host

using MakeTopology = Topology (*)(int rank, int ranks, int root);

void broadcast(Peers& peers, const std::string& operation, const AnyArray& array, int root,
               Stream& stream, const std::string& name, MakeTopology make_topology, Plan plan) {
    require_reachable(peers, root, operation);
    CollectiveCall call{operation, array.count, array.type, name};
    call.input = call.output = array.data;
    call.input_bytes = call.output_bytes = plan.bytes = array.bytes();
    call.root = root;
    const Collective collective = peers.next_collective(call, stream);
    const PeersView& view = peers.view();
    launch_cooperative(stream, shape_of_transfer(peers, plan.bytes), broadcast_kernel, collective,
                       make_topology(view.rank, view.world_size, root), plan);
    peers.enqueued(stream);
}

}  // namespace

int default_slices(std::size_t bytes) {
    constexpr std::size_t slice = kernels_run_on_cpu ? 128 << 10 : 512 << 10, most_slices = 1024;
    return static_cast<int>(std::clamp<std::size_t>((bytes + slice - 1) / slice, 1, most_slices));
}

void linear_broadcast(Peers& peers, const AnyArray& array, int root, Stream& stream,
                      const std::string& name) {
    broadcast(peers, "linear broadcast", array, root, stream, name, linear_topology,
              {.in_turn = true});
}

void all_at_once_broadcast(Peers& peers, const AnyArray& array, int root, Stream& stream,
                           const std::string& name) {
    broadcast(peers, "all-at-once broadcast", array, root, stream, name, linear_topology,
              {.slices = default_slices(array.bytes())});
}

void tree_broadcast(Peers& peers, const AnyArray& array, int root, Stream& stream,
                    const std::string& name) {
    broadcast(peers, "tree broadcast", array, root, stream, name, tree_topology, {.in_turn = true});
}

void chain_broadcast(Peers& peers, const AnyArray& array, int root, Stream& stream,
                     const std::string& name, int slices) {
    if (slices < 1)
        throw std::invalid_argument("chain broadcast: the data cannot be cut into " +
                                    std::to_string(slices) + " slices; 1 is the least");
    // A rank that cuts it otherwise is found out by its record.
    broadcast(peers, "chain broadcast (" + std::to_string(slices) + ")", array, root, stream, name,
              chain_topology, {.slices = slices});
}

}  // namespace ddp
