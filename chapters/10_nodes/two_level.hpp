#pragma once
// All-reduce on two levels, for nodes that have the same number of ranks: H nodes of L ranks. Rank
// l of every node is on rail l.
//
//     1. reduce-scatter    rank l of a node sums its rail's chunks of the L arrays on the node
//     2. ring              these sums go round the H ranks of the rail, as in one ring over nodes
//     3. all-gather        the complete sums go to all L arrays on the node
//
//             node 0           node 1
//     rail 0  rank 0  ◀──────▶ rank 2       chunks 0 and 2
//               ▲ ▼              ▲ ▼
//     rail 1  rank 1  ◀──────▶ rank 3       chunks 1 and 3
//
// Only step 2 uses the network: 2 (H - 1) / H K bytes leave a node, where one ring over all N = H L
// ranks sends 2 (N - 1) / N K. The steps go slice by slice, so all three run at the same
// time. (Goyal et al., "Accurate, large minibatch SGD", 2017, section 4, and NCCL do the same.)
//
// The array has N chunks. The sum of chunk c L + l adds up each node first, from local rank l + 1,
// wrapping around to l, and then the nodes, from c + 1 to c. Every partial sum is a T; an
// average divides the whole sum. So the bits depend on H and L, and on nothing else.
#include "10_nodes/placement.hpp"
#include "10_nodes/ring_plan.hpp"

namespace ddp {

class TwoLevelAllReduce {
  public:
    // All ranks construct theirs together. `placement` is even. Adds channels to `proxy`, which
    // starts when all are there.
    TwoLevelAllReduce(Peers& peers, NetworkProxy& proxy, const Placement& placement);

    // The memory that it needs in the arena.
    static constexpr std::size_t arena_bytes = RingNeighbours::arena_bytes;

    // Keeps to the contract of all_reduce.hpp.
    void all_reduce(const Call& call, Stream& stream);

  private:
    Peers& peers_;
    const Placement placement_;
    RingNeighbours neighbours_;
};

}  // namespace ddp
