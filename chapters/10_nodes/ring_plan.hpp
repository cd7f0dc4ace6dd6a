#pragma once
// The plan of a rank's steps in a ring over nodes, and its two neighbours there.
#include <cstddef>

#include "06_messages/peers.hpp"
#include "10_nodes/network/network_proxy.hpp"

namespace ddp {

// The steps of a rank in an operation over a ring of N. An all-reduce has 2 N - 1 of them. In step
// s the rank at position p is busy with chunk p - 1 - s: in step 0 it sends it on; up to step N -
// 1, in which it is its own and becomes complete, it receives it, adds and sends; from then on it
// receives and sends. In its first step an operation receives nothing, in its last it sends
// nothing.
struct RingPlan {
    int position = 0, ranks = 1;       // this rank's place in the ring, and its length
    int first = 0, last = 0;           // step
    int root = -1;                     // only this position's chunk is not empty; -1: all may be
    std::size_t chunk = 0, total = 0;  // elements of the longest chunk, and of all
    // Where chunk c lies in a whole array, in chunks: at order[c] if there is such a list, in
    // memory of the device; at c stride + offset otherwise.
    const int* order = nullptr;
    int stride = 1, offset = 0;
    bool input_is_whole = false;  // it has all chunks, one after the other; or only this rank's
    bool output_is_whole = false;
    // The ranks of this node, as the view counts them, that must have begun the same operation.
    int local_begin = 0, local_end = 0;
    // A chunk is cut into slices of one size, `rounds` rounds of them. A round has gone through all
    // steps before the next one begins: otherwise all ranks would fill their FIFOs, and none would
    // empty them.
    std::size_t slice = 1, rounds = 1;

    // Returns the step in which a chunk's sum becomes complete.
    __host__ __device__ int complete() const { return ranks - 1; }
};

// Slices of a round: while some are on their way, as many are worked on.
inline constexpr std::size_t slices_of_round = fifo_slots / 2;

// Cuts the longest chunk into rounds of slices of one length, which a slot can hold. Very short
// slices would cost more than they bring.
void cut_into_slices(RingPlan& plan, std::size_t element_bytes);

// A rank's two neighbours in a ring. It empties the FIFO that its left neighbour fills, and fills
// its right neighbour's.
class RingNeighbours {
  public:
    // The ranks of a group make theirs in the same order, and meet in a barrier before the first
    // operation. `left` and `right` are ranks by number. Where one of them is on another node, adds
    // `channel` to the proxy, which starts when all are there.
    RingNeighbours(Peers& peers, NetworkProxy& proxy, int left, int right, int channel);

    // The memory that the FIFO takes of the arena.
    static constexpr std::size_t arena_bytes = sizeof(Fifo) + SharedArena::unit;

    const FifoSide& left() const { return left_; }
    const FifoSide& right() const { return right_; }

  private:
    ArenaBuffer<Fifo> in_arena_;
    FifoSide left_, right_;
};

}  // namespace ddp
