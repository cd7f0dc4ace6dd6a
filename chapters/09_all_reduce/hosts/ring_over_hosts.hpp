#pragma once
// All ranks on several hosts, in one ring. Each rank fills the FIFO of its right neighbour and
// empties its own, which its left neighbour fills; a neighbour on another host is reached by way of
// the network proxy. The kernel does not see the difference.
//
// The ring goes by rank. Where ranks are dealt out to the hosts in blocks, as mpirun does unless it
// is told otherwise, it enters and leaves each host once; otherwise it crosses more often, and each
// host's link carries that much more.
//
// Every operation is a part of the ring's all-reduce:
//
//     all_reduce        sums of all chunks go round, and then go round again as they are
//     reduce_scatter    the first time only
//     all_gather        the second time only
//     reduce            the first time, with the root's chunk only, which is all there is
//     broadcast         the second time, the same
//
// So they have one kernel, and one order of sums: that of
// all_reduce.hpp. Chunk c is the sum of the elements
// of rank c + 1, c + 2 and so on round to c; of a reduce, c is the root.
#include <cstddef>
#include <string>

#include "02_kernels/reduction.hpp"
#include "06_messages/peers.hpp"
#include "09_all_reduce/all_reduce.hpp"
#include "09_all_reduce/hosts/network_proxy.hpp"

namespace ddp {

// The steps of a rank in an operation. An all-reduce has 2 N - 1 of them. In step s rank r
// is busy with chunk r - 1 - s: in step 0 it sends it on; up to step N - 1, in which it is its own
// and becomes complete, it receives it, adds and sends; from then on it receives and sends. In its
// first step an operation receives nothing, in its last it sends nothing.
struct RingPlan {
    int first = 0, last = 0;           // step
    int root = -1;                     // only this rank's chunk is not empty; -1: all may be
    std::size_t chunk = 0, total = 0;  // elements of the longest chunk, and of all
    bool input_is_whole = false;  // it has all chunks, one after the other; or only this rank's
    bool output_is_whole = false;
    // A chunk is cut into slices of one size, `rounds` rounds of them. A round has gone through all
    // steps before the next one begins: otherwise all ranks would fill their FIFOs, and none would
    // empty them.
    std::size_t slice = 1, rounds = 1;
};

class RingOverHosts {
  public:
    // All ranks make theirs together. Adds channels to `proxy`, which starts when all are there.
    RingOverHosts(Peers& peers, NetworkProxy& proxy);

    // The memory that its FIFO takes of the arena.
    static constexpr std::size_t arena_bytes = sizeof(Fifo) + SharedArena::unit;

    // The same contracts as within one host (all_reduce.hpp, broadcast.hpp, tree_reduce.hpp): data
    // lies in the arena. They throw std::invalid_argument if it does not.
    void all_reduce(const Call& call, Stream& stream);
    void reduce_scatter(const Call& call, Stream& stream);
    void reduce(const Call& call, Stream& stream);
    void all_gather(const Call& call, Stream& stream);
    void broadcast(const Call& call, Stream& stream);

  private:
    template <class T>
    void launch(const Call& call, RingPlan plan, Stream& stream);
    void launch_sum(const Call& call, const RingPlan& plan, Stream& stream);
    Fifo* find_fifo_of(int right);

    Peers& peers_;
    ArenaBuffer<Fifo> in_arena_;  // where the left neighbour is on this host
    Fifo *from_left_ = nullptr, *to_right_ = nullptr;
};

}  // namespace ddp
