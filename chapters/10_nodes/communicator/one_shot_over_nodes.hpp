#pragma once
// All-reduce of a short array between nodes. However short a message is, its way from one node to
// another takes a while, and in a ring 2 (H - 1) such trips follow each other. In one shot, all
// messages are on their way at the same time:
//
//     1. rank l of a node sums its rail's chunks of the L arrays on the node (two_level.hpp)
//     2. it sends these sums to rank l of every other node, and receives theirs
//     3. it adds up all nodes, and writes the result to the L arrays of its node
//
//             node 0        node 1        node 2
//     rail 0  rank 0 ◀────▶ rank 2 ◀────▶ rank 4
//                └──────────────────────────┘         the same for rail 1: ranks 1, 3 and 5
//
// (H - 1) K bytes leave a node, H / 2 times as many as on two levels: for short arrays, that costs
// less than the ways. Chunks and the order of additions are those of the two levels, or, where each
// node has one rank, of the ring. So the bits are the same, whichever is chosen.
#include "10_nodes/two_level.hpp"

namespace ddp {

class OneShotOverNodes {
  public:
    // Returns whether nodes so placed can take it: a few of them, on two levels or of one rank.
    static bool suits(const Placement& placement, int levels);

    // All ranks make theirs together, if suits(). `neighbours` are those of the ring that longer
    // arrays take: a rank that is in another operation is heard of there. Adds channels to `proxy`,
    // which starts when all are there.
    OneShotOverNodes(Peers& peers, NetworkProxy& proxy, const Placement& placement,
                     const RingNeighbours& neighbours);

    // Returns the largest array that it is worth it for. Two nodes send no more bytes than on two
    // levels; it is only that a longer array is better sent in slices, while others are summed.
    static std::size_t max_bytes(const Placement& placement) {
        return placement.nodes() == 2 ? 32 << 10 : 8 << 10;
    }

    // Keeps to the contract of all_reduce.hpp, for up to max_bytes().
    void all_reduce(const Call& call, Stream& stream);

    // A rank's FIFOs to and from the same rank of each node; its own node's entry is not used.
    static constexpr int max_nodes = 8;
    struct Rail {
        FifoSide from[max_nodes], to[max_nodes];
    };

  private:
    Peers& peers_;
    const Placement placement_;
    Rail rail_;
};

}  // namespace ddp
