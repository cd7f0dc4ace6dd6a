#pragma once
// All ranks on several nodes, in one ring. Each rank fills the FIFO of its right neighbour and
// empties its own, which its left neighbour fills; a neighbour on another node is reached by way of
// the network proxy. The kernel does not see the difference.
//
// The ring goes node by node, so that it enters and leaves each of them once, however the ranks
// were dealt out to the nodes (placement.hpp).
//
// Every operation is a part of the ring's all-reduce:
//
//     all_reduce        sums of all chunks go round, and then go round again as they are
//     reduce_scatter    the first time only
//     all_gather        the second time only
//     reduce            the first time, with the root's chunk only, which is all there is
//     broadcast         the second time, the same
//
// So they have one kernel, and one order of sums. With the ranks in the ring's order it is that of
// all_reduce.hpp: chunk c is the sum of the elements of the rank at position c + 1, then c + 2 and
// so on round to c; of a reduce, c is the root's position.
#include <string>

#include "02_kernels/reduction.hpp"
#include "06_messages/peers.hpp"
#include "10_nodes/placement.hpp"
#include "10_nodes/ring_plan.hpp"

namespace ddp {

class RingOverNodes {
  public:
    // All ranks make theirs together. Adds channels to `proxy`, which starts when all are there.
    RingOverNodes(Peers& peers, NetworkProxy& proxy, const Placement& placement);

    // The memory that it takes of the arena.
    static constexpr std::size_t arena_bytes =
        RingNeighbours::arena_bytes + max_ranks_over_nodes * sizeof(int) + SharedArena::unit;

    // Keep the contracts of those within one node (all_reduce.hpp, broadcast.hpp, tree_reduce.hpp):
    // data lies in the arena. They throw std::invalid_argument if it does not.
    void all_reduce(const Call& call, Stream& stream);
    void reduce_scatter(const Call& call, Stream& stream);
    void reduce(const Call& call, Stream& stream);
    void all_gather(const Call& call, Stream& stream);
    void broadcast(const Call& call, Stream& stream);

  private:
    RingPlan plan_of(bool sums, bool copies, std::size_t chunk, std::size_t total) const;
    template <class T>
    void launch(const Call& call, RingPlan plan, Stream& stream);
    void launch_sum(const Call& call, const RingPlan& plan, Stream& stream);

    Peers& peers_;
    const Placement placement_;
    RingNeighbours neighbours_;
    ArenaBuffer<int> order_;  // placement_.by_node, where that is not 0, 1, 2, ...
};

}  // namespace ddp
