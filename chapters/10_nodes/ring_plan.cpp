// Cuts chunks into slices, and finds a rank's FIFOs. The longest chunk of a ring:
//
//     chunk    |................................................................|
//     rounds   |...............|...............|...............|................|   one by one
//     slices   |...|...|...|...|                                                    slices_of_round
//
// A slice fills a slot of a FIFO, or less: all slices are of one length. Which FIFO a neighbour
// uses depends on where it is:
//
//     left neighbour, on this node       fills the FIFO in this rank's arena
//     left neighbour, on another node    the proxy fills one in pinned memory
//     right neighbour, on this node      empties the FIFO in its own arena
//     right neighbour, on another node   the proxy empties one in pinned memory
#include "10_nodes/ring_plan.hpp"

#include <algorithm>

namespace ddp {

void cut_into_slices(RingPlan& plan, std::size_t element_bytes) {
    constexpr std::size_t unit = 128, shortest = 8 << 10;
    const auto parts = [](std::size_t whole, std::size_t part) {
        return (whole + part - 1) / part;
    };
    const std::size_t bytes = plan.chunk * element_bytes;
    plan.rounds = std::max<std::size_t>(parts(bytes, slices_of_round * slot_bytes), 1);
    const std::size_t slice = parts(bytes, plan.rounds * slices_of_round);
    plan.slice = std::max(parts(slice, unit) * unit, shortest) / element_bytes;
}

RingNeighbours::RingNeighbours(Peers& peers, NetworkProxy& proxy, int left, int right,
                               int channel) {
    const PeersView& view = peers.view();
    const auto side_of = [&](int number) {
        const int local = peers.index_of(number);
        return FifoSide{nullptr, number, local < 0 ? nullptr : view.control[local]};
    };
    const auto arena_of = [](ControlBlock* control) {
        return reinterpret_cast<std::byte*>(control);
    };
    left_ = side_of(left);
    right_ = side_of(right);
    // In every arena the FIFO has the same place: all members of a group allocate the same.
    in_arena_ = peers.allocate<Fifo>(1);
    const FifoHead fresh;
    copy_to_device(static_cast<FifoHead*>(in_arena_.data()), &fresh, sizeof fresh);
    const std::ptrdiff_t place =
        reinterpret_cast<std::byte*>(in_arena_.data()) - arena_of(view.control[view.rank]);
    // The left neighbour fills the one in this rank's arena, or the proxy one in pinned memory; the
    // right one's lies in its arena, or the proxy empties it.
    left_.fifo =
        left_.control == nullptr ? proxy.channel_from(left_.peer, channel) : in_arena_.data();
    right_.fifo = right_.control == nullptr
                      ? proxy.channel_to(right_.peer, channel)
                      : reinterpret_cast<Fifo*>(arena_of(right_.control) + place);
}

}  // namespace ddp
