// The exercise tree_by_hand: a broadcast made of messages. Read exercises/07_broadcast/README.md
// first.
#include "exercises/07_broadcast/tree_by_hand.hpp"

namespace ddp {

void broadcast_by_tree(Peers& peers, float* data, std::size_t count, int root, Stream& stream) {
    // stub: arrives
    //: Tasks tree and from_anywhere are solved here as well. peers.send(data, count, to, stream)
    //: and peers.receive(data, count, from, stream) enqueue a message's two ends.
    const int ranks = peers.rank().world_size();
    const int place = (peers.rank().rank() - root + ranks) % ranks;  // counted from the root
    int distance = 1;
    while (distance < ranks)
        distance *= 2;
    // Halves the distance: in each step those that have the data send it that far.
    for (distance /= 2; distance > 0; distance /= 2) {
        const int to = place + distance, from = place - distance;
        if (place % (2 * distance) == 0 && to < ranks)
            peers.send(data, count, (to + root) % ranks, stream, "tree");
        if (place % (2 * distance) == distance)
            peers.receive(data, count, (from + root) % ranks, stream, "tree");
    }
    // end stub
}

}  // namespace ddp
