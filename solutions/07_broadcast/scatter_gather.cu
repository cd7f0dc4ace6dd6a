// The exercise scatter_gather: a broadcast in chunks. Read exercises/07_broadcast/README.md first.
#include "exercises/07_broadcast/scatter_gather.hpp"

#include "07_broadcast/broadcast.hpp"
#include "07_broadcast/transfer.cuh"

namespace ddp {
namespace {

// stub
//: Your kernel goes here. What you need is in 07_broadcast/transfer.cuh: slice_of() and
//: block_share() cut the data, a Neighbour passes it on by post() and consume(), and its ack() and
//: wait_for_ack() decide when a rank may end. broadcast.cu shows how a kernel begins and ends.
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
__device__ bool take_share(const Collective& collective, int from, int step, Slice share) {
    const PeersView& view = collective.view;
    std::byte* data = view.data_of(view.rank, collective.record);
    const auto copy = [&](const std::byte* theirs) {
        copy_by_block(data + share.begin, theirs + share.begin, share.bytes);
    };
    return Neighbour{collective, from}.consume(static_cast<std::uint64_t>(step), share.bytes, copy);
}

// One thread of the root. Sends each rank its chunk, one after the other. A chunk is posted when
// the one before it has been acknowledged, so that the first does not wait for the last.
__device__ bool scatter(const Collective& collective, const Ring& ring) {
    for (int i = 1; i < ring.ranks; i++) {
        const int to = (ring.root + i) % ring.ranks;
        Neighbour neighbour{collective, to};
        if (!neighbour.post(scatter_step) || !neighbour.wait_for_ack(scatter_step))
            return false;
    }
    return true;
}

// All threads of a block. Receives this rank's chunk from the root; the root sends all chunks.
__device__ bool get_own_chunk(const Collective& collective, const Ring& ring) {
    __shared__ bool is_done;
    const bool is_root = ring.rank == ring.root;
    if (!is_root && !take_share(collective, ring.root, scatter_step, ring.share_of_chunk(0)))
        return false;
    if (threadIdx.x == 0) {
        if (is_root)
            is_done = scatter(collective, ring);
        else
            Neighbour{collective, ring.root}.ack(scatter_step);
        is_done = (!is_root || is_done) && handshake(collective, ring.left()) &&
                  handshake(collective, ring.right());
    }
    __syncthreads();
    return is_done;
}

__global__ void scatter_gather_kernel(const __grid_constant__ Collective collective,
                                      std::size_t bytes, int root) {
    __shared__ bool has_begun;
    const PeersView& view = collective.view;
    const Ring ring{view.rank, view.world_size, root, bytes};
    if (threadIdx.x == 0)
        has_begun = begin_collective(collective);
    __syncthreads();
    if (!has_begun || (ring.ranks > 1 && !get_own_chunk(collective, ring)))
        return;
    for (int step = 2; step <= ring.ranks; step++) {
        if (threadIdx.x == 0)
            Neighbour{collective, ring.right()}.post(static_cast<std::uint64_t>(step));
        if (ring.rank != ring.root &&
            !take_share(collective, ring.left(), step, ring.share_of_chunk(step - 1)))
            return;
    }
    if (threadIdx.x != 0)
        return;
    // This rank's data may be overwritten once the right neighbour has read the last chunk.
    if (ring.ranks > 1 && ring.rank != ring.root)
        Neighbour{collective, ring.left()}.ack(static_cast<std::uint64_t>(ring.ranks));
    if (ring.ranks == 1 || ring.right() == ring.root ||
        Neighbour{collective, ring.right()}.wait_for_ack(static_cast<std::uint64_t>(ring.ranks)))
        end_block(collective);
}
// end stub

}  // namespace

void scatter_gather_broadcast(Peers& peers, float* data, std::size_t count, int root,
                              Stream& stream) {
    // stub: root_0
    //: Task any_root is solved here as well. Describe the broadcast by broadcast_call(), and call
    //: launch_collective(peers, call, stream, shape_of_transfer(peers, bytes), kernel, ...): your
    //: kernel gets a Collective first, and then what you pass on.
    Call call = broadcast_call(data, count, root);
    call.operation = "scatter-gather broadcast";
    launch_collective(peers, call, stream, shape_of_transfer(peers, call.bytes()),
                      scatter_gather_kernel, call.bytes(), root);
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
