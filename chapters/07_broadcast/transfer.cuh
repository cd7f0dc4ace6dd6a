#pragma once
// A transfer between two ranks, as one step of a collective. The data stays where it is until the
// receiver fetches it: it copies, or adds, straight out of the sender's arena.
//
//     sender                              receiver
//     post(step)     ── data is ready ──▶  consume(step, bytes, work): waits, then calls work
//     wait_for_ack(step) ◀── was read ───  ack(step)
//
// Block b of one rank works with block b of the other, on the same share of the data.
//
// Over the simulated link a transfer takes as long as the link says. All of that is behind the
// Neighbour: thread 0 counts the link's time, in link_time(collective), and passes it on with every
// post and ack. So a rank that the operating system wakes too late does not make the link
// slower than it is.
#include "06_messages/support/copy.cuh"
#include "06_messages/support/link.cuh"
#include "07_broadcast/collective.cuh"

namespace ddp {

// ---- Which bytes

// A range of an array, in bytes.
struct Slice {
    std::size_t begin = 0, bytes = 0;
};

// Slices are cut at multiples of this many bytes: between elements, and between cache lines.
inline constexpr std::size_t slice_unit = 128;

// Returns slice `i` of `slices` that `bytes` are cut into, all of nearly the same size.
__host__ __device__ inline Slice slice_of(std::size_t bytes, std::size_t slices, std::size_t i) {
    const std::size_t units = (bytes + slice_unit - 1) / slice_unit;
    const std::size_t begin = units * i / slices * slice_unit,
                      end = units * (i + 1) / slices * slice_unit;
    return {begin, (end < bytes ? end : bytes) - begin};
}

// Returns this block's share of a slice.
__device__ inline Slice block_share(const Slice& slice) {
    const Slice share = slice_of(slice.bytes, gridDim.x, blockIdx.x);
    return {slice.begin + share.begin, share.bytes};
}

// ---- The other side of a transfer

// Another rank, as one block of this rank's kernel works with it. Steps are counted from 1; the
// first one begins with the handshake, which finds out whether both ranks do the same. Functions
// that wait return false if the wait was in vain: then the run fails, and the kernel must end.
struct Neighbour {
    const Collective& collective;
    int rank;

    // The neighbour's input and output, after the handshake.
    __device__ std::byte* input() const {
        return collective.view.data_of(rank, offsets_of(collective, rank));
    }
    __device__ std::byte* output() const {
        return collective.view.result_of(rank, offsets_of(collective, rank));
    }

    // One thread. Waits until the neighbour has begun the same collective.
    __device__ bool handshake() { return ddp::handshake(collective, rank); }

    // One thread. Posts that the neighbour can read this block's data up to `step`.
    __device__ bool post(std::uint64_t step) {
        if (step == 1 && !handshake())
            return false;
        pass_on_time();
        raise_posted(collective, rank, step);
        return true;
    }

    // All threads of a block. Waits until the neighbour has posted `step`; step 0 is its input,
    // which is there when it has begun. Then calls work(input()), which reads `bytes` of the
    // neighbour's data.
    template <class Work>
    __device__ bool consume(std::uint64_t step, std::size_t bytes, const Work& work) {
        __shared__ bool is_posted;
        if (threadIdx.x == 0)
            is_posted =
                (step > 1 || handshake()) && (step == 0 || wait_for_posted(collective, rank, step));
        __syncthreads();
        if (!is_posted)
            return false;
        work(input());
        __syncthreads();
        if (threadIdx.x == 0 && is_over_link(collective))
            spend_time_on_link(bytes);
        return true;
    }

    // One thread. Acknowledges that this block has read all data up to `step`: the neighbour may
    // end, or send to other ranks.
    __device__ void ack(std::uint64_t step) {
        pass_on_time();
        raise_acknowledged(collective, rank, step);
    }

    // One thread. Waits until the neighbour has acknowledged all data up to `step`.
    __device__ bool wait_for_ack(std::uint64_t step) {
        if (!wait_for_acknowledged(collective, rank, step))
            return false;
        if (is_over_link(collective))
            link_time(collective) = later_time();
        return true;
    }

  private:
    __device__ void pass_on_time() const {
        if (is_over_link(collective))
            store_release(state_of(*collective.view.control[rank]).arrival_ns[collective.view.rank],
                          link_time(collective));
    }
    // Returns the neighbour's time or this block's, whichever is later.
    __device__ std::uint64_t later_time() const {
        const std::uint64_t own = link_time(collective);
        const std::uint64_t theirs = load_acquire(state_of(collective.view.own()).arrival_ns[rank]);
        return theirs > own ? theirs : own;
    }
    // Waits as long as the link needs for `bytes` from the neighbour.
    __device__ void spend_time_on_link(std::size_t bytes) {
        const PeersView& view = collective.view;
        const std::uint64_t arrival = arrival_over_link(view, rank, view.rank, bytes, later_time());
        link_time(collective) = arrival;
        sleep_until(view, arrival);  // if the run fails meanwhile, the next wait ends
    }
};

}  // namespace ddp
