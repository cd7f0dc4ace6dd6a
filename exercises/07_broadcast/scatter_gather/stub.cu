// The exercise scatter_gather: a broadcast in chunks. Read exercises/07_broadcast/README.md first.
#include "exercises/07_broadcast/scatter_gather.hpp"

#include "07_broadcast/broadcast.hpp"
#include "07_broadcast/transfer.cuh"

namespace ddp {
namespace {

// Your kernel goes here. What you need is in 07_broadcast/transfer.cuh: slice_of() and
// block_share() cut the data, a Neighbour passes it on by post() and consume(), and its ack() and
// wait_for_ack() decide when a rank may end. broadcast.cu shows how a kernel begins and ends.

}  // namespace

void scatter_gather_broadcast(Peers& peers, float* data, std::size_t count, int root,
                              Stream& stream) {
    // Task any_root is solved here as well. Describe the broadcast by broadcast_call(), and call
    // launch_collective(peers, call, stream, shape_of_transfer(peers, bytes), kernel, ...): your
    // kernel gets a Collective first, and then what you pass on.
    throw NotImplemented("root_0");
}

double scatter_gather_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    // message.seconds(n) is what a message of n bytes takes. How many messages stand in a row?
    throw NotImplemented("cost");
}

}  // namespace ddp
