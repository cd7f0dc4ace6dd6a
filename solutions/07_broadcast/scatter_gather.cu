// The exercise scatter_gather: a broadcast in chunks. Read exercises/07_broadcast/README.md first.
#include "exercises/07_broadcast/scatter_gather.hpp"

#include "07_broadcast/topology.hpp"
#include "07_broadcast/transfer.cuh"

namespace ddp {
namespace {

// stub
//: Your kernel goes here. What you need is in 07_broadcast/transfer.cuh: slice_of() and
//: block_share() cut the data, post() and take() pass it on, acknowledge() and
//: wait_until_acknowledged() decide when a rank may end. broadcast.cu shows how a kernel begins and
//: ends.
// The steps of a rank: in step 1 it receives its chunk from the root, in step s > 1 the chunk that
// its left neighbour received in step s - 1.
constexpr int scatter_step = 1;

struct Ring {
    int rank, ranks, root;
    std::size_t bytes;

    __device__ int left() const { return (rank + ranks - 1) % ranks; }
    __device__ int right() const { return (rank + 1) % ranks; }
    // Returns this block's share of a chunk: of this rank's own for `i` = 0, and then backwards.
    __device__ Slice share_of_chunk(int i) const {
        const int chunk = (rank - i + ranks) % ranks;
        return block_share(
            slice_of(bytes, static_cast<std::size_t>(ranks), static_cast<std::size_t>(chunk)));
    }
};

// All threads of a block. Copies `share` of rank `from`'s data into this rank's.
__device__ bool take_share(Collective& collective, int from, int step, Slice share,
                           std::uint64_t& now_ns) {
    const PeersView& view = collective.view;
    std::byte* data = view.data_of(view.rank, collective.record);
    return take(collective, from, step, share.bytes, now_ns, [&](const std::byte* theirs) {
        copy_by_block(data + share.begin, theirs + share.begin, share.bytes);
    });
}

// One thread of the root. Sends each rank its chunk, one after the other. A chunk is posted when
// the one before it has been acknowledged, so that the first does not wait for the last.
__device__ bool scatter(Collective& collective, const Ring& ring, std::uint64_t& now_ns) {
    for (int i = 1; i < ring.ranks; i++) {
        const int to = (ring.root + i) % ring.ranks;
        if (!post(collective, to, scatter_step, now_ns) ||
            !wait_until_acknowledged(collective, to, scatter_step, now_ns))
            return false;
    }
    return true;
}

// All threads of a block. Receives this rank's chunk from the root; the root sends all chunks.
__device__ bool get_own_chunk(Collective& collective, const Ring& ring, std::uint64_t& now_ns) {
    __shared__ bool is_done;
    const bool is_root = ring.rank == ring.root;
    if (!is_root &&
        !take_share(collective, ring.root, scatter_step, ring.share_of_chunk(0), now_ns))
        return false;
    if (threadIdx.x == 0) {
        if (is_root)
            is_done = scatter(collective, ring, now_ns);
        else
            acknowledge(collective, ring.root, scatter_step, now_ns);
        is_done = (!is_root || is_done) && handshake(collective, ring.left()) &&
                  handshake(collective, ring.right());
    }
    __syncthreads();
    return is_done;
}

__global__ void scatter_gather_kernel(Collective collective, std::size_t bytes, int root) {
    __shared__ bool has_begun;
    const PeersView& view = collective.view;
    const Ring ring{view.rank, view.world_size, root, bytes};
    std::uint64_t now_ns = link_time(collective);
    if (threadIdx.x == 0)
        has_begun = begin_collective(collective);
    __syncthreads();
    if (!has_begun || (ring.ranks > 1 && !get_own_chunk(collective, ring, now_ns)))
        return;
    for (int step = 2; step <= ring.ranks; step++) {
        if (threadIdx.x == 0) {
            pass_on_time(collective, ring.right(), now_ns);
            tell_ready(collective, ring.right(), static_cast<std::uint64_t>(step));
        }
        if (ring.rank != ring.root &&
            !take_share(collective, ring.left(), step, ring.share_of_chunk(step - 1), now_ns))
            return;
    }
    if (threadIdx.x != 0)
        return;
    // This rank's data may be overwritten once the right neighbour has read the last chunk.
    if (ring.ranks > 1 && ring.rank != ring.root)
        acknowledge(collective, ring.left(), ring.ranks, now_ns);
    if (ring.ranks == 1 || ring.right() == ring.root ||
        wait_until_acknowledged(collective, ring.right(), ring.ranks, now_ns))
        end_block(collective);
}
// end stub

}  // namespace

void scatter_gather_broadcast(Peers& peers, float* data, std::size_t count, int root,
                              Stream& stream) {
    // stub: root_0
    //: Task any_root is solved here as well. Fill in a CollectiveCall, get a Collective from
    //: peers.next_collective(call, stream), launch your kernel with launch_cooperative(stream,
    //: shape_of_transfer(peers, bytes), kernel, collective, ...), and call peers.enqueued(stream).
    CollectiveCall call{"scatter-gather broadcast", count, type_name<float>(), ""};
    call.input = call.output = data;
    call.input_bytes = call.output_bytes = count * sizeof(float);
    call.root = root;
    require_reachable(peers, root, call.operation);
    const Collective collective = peers.next_collective(call, stream);
    launch_cooperative(stream, shape_of_transfer(peers, call.input_bytes), scatter_gather_kernel,
                       collective, call.input_bytes, root);
    peers.enqueued(stream);
    // end stub
}

double scatter_gather_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    // stub: cost
    //: message.seconds(n) is what a message of n bytes takes. How many messages stand in a row?
    const std::size_t chunk = bytes / static_cast<std::size_t>(ranks);
    return 2 * (ranks - 1) * message.seconds(chunk);
    // end stub
}

}  // namespace ddp
