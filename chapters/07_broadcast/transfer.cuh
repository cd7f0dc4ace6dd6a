#pragma once
// A transfer between two ranks, as a step of a collective: one offers what it has, the other one
// takes it from there, straight out of its arena. Block b of one rank works with block b of the
// other, on the same share of the data.
//
// Over the simulated link it takes as long as the link says. Both sides then count the link's time
// (`now_ns`, of thread 0) and pass it on, so that a rank which the operating system wakes too late
// does not make the link slower than it is.
#include "06_messages/peers.hpp"
#include "06_messages/support/copy.cuh"
#include "07_broadcast/collective.cuh"

namespace ddp {

// A part of an array, in bytes.
struct Slice {
    std::size_t begin = 0, bytes = 0;
};

// Piece `i` of `pieces` that make up `bytes`: of nearly the same size, and cut where no element and
// no cache line is.
__device__ inline Slice slice_of(std::size_t bytes, std::size_t pieces, std::size_t i) {
    constexpr std::size_t unit = 128;
    const std::size_t units = (bytes + unit - 1) / unit;
    const std::size_t begin = units * i / pieces * unit, end = units * (i + 1) / pieces * unit;
    return {begin, (end < bytes ? end : bytes) - begin};
}

// This block's share of a piece.
__device__ inline Slice block_share(const Slice& piece) {
    const Slice share = slice_of(piece.bytes, gridDim.x, blockIdx.x);
    return {piece.begin + share.begin, share.bytes};
}

// The same on every rank, if the devices are of one kind. Over the link one block makes each
// transfer.
inline LaunchShape shape_of_transfer(const Peers& peers, std::size_t bytes) {
    const PeersView& view = peers.view();
    LaunchShape shape = shape_of_copy(bytes, view.world_size);
    if (view.link.bytes_per_ns > 0)
        shape.grid.x = 1;
    return shape;
}

__device__ inline bool is_over_link(const Collective& collective) {
    return collective.view.link.bytes_per_ns > 0;
}

// When a transfer that begins now can begin.
__device__ inline std::uint64_t link_time(const Collective& collective) {
    return is_over_link(collective) ? device_clock_ns() : 0;
}

__device__ inline void pass_on_time(const Collective& collective, int to, std::uint64_t now_ns) {
    if (is_over_link(collective))
        store_release(
            collective.view.control[to]->collective_state.arrival_ns[collective.view.rank], now_ns);
}
__device__ inline std::uint64_t later_time(const Collective& collective, int from,
                                           std::uint64_t now_ns) {
    if (!is_over_link(collective))
        return now_ns;
    const std::uint64_t theirs =
        load_acquire(collective.view.own().collective_state.arrival_ns[from]);
    return theirs > now_ns ? theirs : now_ns;
}

// One thread. What this block has is ready, up to `step` (from 1), to be taken by rank `to`, once
// that has come: false if it does not, or comes for something else.
__device__ inline bool post(Collective& collective, int to, int step, std::uint64_t now_ns) {
    if (step == 1 && !handshake(collective, to))
        return false;
    pass_on_time(collective, to, now_ns);
    tell_ready(collective, to, step);
    return true;
}

// One thread. Until rank `to` has all up to `step`.
__device__ inline bool wait_until_acknowledged(Collective& collective, int to, int step,
                                               std::uint64_t& now_ns) {
    if (!wait_for_acknowledged(collective, to, step))
        return false;
    now_ns = later_time(collective, to, now_ns);
    return true;
}

// One thread. Rank `from` may end, or serve others: we have all up to `step`.
__device__ inline void acknowledge(const Collective& collective, int from, int step,
                                   std::uint64_t now_ns) {
    pass_on_time(collective, from, now_ns);
    tell_acknowledged(collective, from, step);
}

// One thread. The link needs its time for `bytes` from rank `from`.
__device__ inline void spend_time_on_link(const Collective& collective, int from, std::size_t bytes,
                                          std::uint64_t& now_ns) {
    const PeersView& view = collective.view;
    const std::uint64_t ready_ns = later_time(collective, from, now_ns);
    now_ns = arrival_over_link(view, from, view.rank, bytes, ready_ns);
    sleep_until(view, now_ns);  // if the run fails meanwhile, the next wait finds out
}

// All threads of a block. Waits until rank `from` offers `step`, and calls work(theirs) with the
// place in that rank's arena which it has named; work reads `bytes` of it. False if the wait has
// ended in vain.
template <class Work>
__device__ bool take(Collective& collective, int from, int step, std::size_t bytes,
                     std::uint64_t& now_ns, const Work& work) {
    __shared__ bool is_ready;
    const PeersView& view = collective.view;
    if (threadIdx.x == 0)
        is_ready =
            (step > 1 || handshake(collective, from)) && wait_for_ready(collective, from, step);
    __syncthreads();
    if (!is_ready)
        return false;
    work(view.data_of(from, place_of(collective, from)));
    __syncthreads();
    if (threadIdx.x == 0 && is_over_link(collective))
        spend_time_on_link(collective, from, bytes, now_ns);
    return true;
}

}  // namespace ddp
