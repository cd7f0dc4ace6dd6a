#pragma once
// All-reduce of a short array between hosts. However short a message is, its way from one host to
// another takes a while, and in a ring 2 (H - 1) such trips follow each other. In one shot, all
// messages are on their way at the same time:
//
//     1. rank l of a host sums its rail's chunks of the L arrays on the host (two_level.hpp)
//     2. it sends these sums to rank l of every other host, and receives theirs
//     3. it adds up all hosts, and writes the result to the L arrays of its host
//
//             host 0        host 1        host 2
//     rail 0  rank 0 ◀────▶ rank 2 ◀────▶ rank 4
//                └──────────────────────────┘         the same for rail 1: ranks 1, 3 and 5
//
// (H - 1) K bytes leave a host, H / 2 times as many as on two levels: for short arrays, that costs
// less than the ways. Chunks and the order of additions are those of the two levels, or, where each
// host has one rank, of the ring. So the bits are the same, whichever is chosen.
#include "10_nodes/two_level.hpp"

namespace ddp {

class OneShotOverHosts {
  public:
    // Returns whether hosts so placed can take it: a few of them, on two levels or of one rank.
    static bool suits(const Placement& placement, int levels);

    // All ranks make theirs together, if suits(). `neighbours` are those of the ring that longer
    // arrays take: a rank that is in another operation is heard of there. Adds channels to `proxy`,
    // which starts when all are there.
    OneShotOverHosts(Peers& peers, NetworkProxy& proxy, const Placement& placement,
                     const RingNeighbours& neighbours);

    // The largest array that it is worth it for.
    static constexpr std::size_t most_bytes = 8 << 10;

    // Keeps to the contract of all_reduce.hpp, for up to most_bytes.
    void all_reduce(const Call& call, Stream& stream);

    // A rank's FIFOs to and from the same rank of each host; its own host's entry is not used.
    static constexpr int most_hosts = 8;
    struct Rail {
        FifoSide from[most_hosts], to[most_hosts];
    };

  private:
    Peers& peers_;
    const Placement placement_;
    Rail rail_;
};

}  // namespace ddp
