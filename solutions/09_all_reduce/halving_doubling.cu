// The exercise halving_doubling: an all-reduce in pairs. Read exercises/09_all_reduce/README.md
// first.
#include "exercises/09_all_reduce/halving_doubling.hpp"

#include <bit>

#include "07_broadcast/transfer.cuh"

namespace ddp {
namespace {

// stub
//: Your kernel goes here. What you need is in 07_broadcast/transfer.cuh: a Neighbour with
//: post(), consume(), ack() and wait_for_ack(); ring.cu of chapter 09 shows how a kernel begins and
//: ends.
// Each pair of ranks meets twice: to sum, and to copy.
constexpr int to_sum = 1, to_copy = 2;

// A part of the array, in elements.
struct Part {
    std::size_t begin, end;

    __device__ Part half(bool upper) const {
        const std::size_t middle = begin + (end - begin) / 2;
        return upper ? Part{middle, end} : Part{begin, middle};
    }
};

// Every block does the whole algorithm on a share of its own, so that blocks never wait for
// another one of their rank.
__device__ Part part_of_block(std::size_t count) {
    const Slice piece = block_share({0, count * sizeof(float)});
    return {piece.begin / sizeof(float), (piece.begin + piece.bytes) / sizeof(float)};
}

// What a block has in hand.
struct Work {
    Collective& collective;
    float* data;

    // All threads. The partner may read our data, as far as it has come.
    __device__ bool offer_to(int partner, int step) {
        __shared__ bool has_come;
        if (threadIdx.x == 0)
            has_come = Neighbour{collective, partner}.post(static_cast<std::uint64_t>(step));
        __syncthreads();
        return has_come;
    }
    // All threads. Adds the partner's `part` to ours, or puts it in its place.
    __device__ bool take_from(int partner, int step, Part part) {
        const std::size_t size = part.end - part.begin;
        const auto work = [&](const std::byte* there) {
            const float* theirs = reinterpret_cast<const float*>(there) + part.begin;
            float* mine = data + part.begin;
            for (std::size_t i = threadIdx.x; i < size; i += blockDim.x)
                mine[i] = step == to_sum ? mine[i] + theirs[i] : theirs[i];
        };
        return Neighbour{collective, partner}.consume(static_cast<std::uint64_t>(step),
                                                      size * sizeof(float), work);
    }
    __device__ bool exchange(int partner, int step, Part part) {
        return offer_to(partner, step) && take_from(partner, step, part);
    }
};

// Ranks 0, ..., pairs - 1, a power of two. The partners of the first step are far apart.
__device__ bool sum_in_pairs(Work& work, int rank, int pairs, Part all) {
    Part part = all;
    for (int distance = pairs / 2; distance > 0; distance /= 2) {
        part = part.half((rank & distance) != 0);
        if (!work.exchange(rank ^ distance, to_sum, part))
            return false;
    }
    return true;
}

// The way back: each rank takes what its partner has, which is as much as it has itself.
__device__ bool copy_in_pairs(Work& work, int rank, int pairs, Part all) {
    for (int distance = 1; distance < pairs; distance *= 2) {
        Part theirs = all;
        for (int d = pairs / 2; d >= distance; d /= 2)
            theirs = theirs.half(((rank ^ distance) & d) != 0);
        if (!work.exchange(rank ^ distance, to_copy, theirs))
            return false;
    }
    return true;
}

// One thread. Our data may change when all who read it have done so.
__device__ bool part_from(Work& work, int partner, int step) {
    Neighbour neighbour{work.collective, partner};
    neighbour.ack(static_cast<std::uint64_t>(step));
    return neighbour.wait_for_ack(static_cast<std::uint64_t>(step));
}

// Ranks from `pairs` on have no partner in the pairs: rank r - pairs adds their data to its own
// first, and gives them the sum at the end.
__global__ void halving_doubling_kernel(Collective collective, std::size_t count, int pairs) {
    const PeersView& view = collective.view;
    const int rank = view.rank;
    auto* data = reinterpret_cast<float*>(view.data_of(rank, collective.record));
    Work work{collective, data};
    const Part all = part_of_block(count);
    __shared__ bool has_begun;
    if (threadIdx.x == 0)
        has_begun = begin_collective(collective);
    __syncthreads();
    if (!has_begun)
        return;
    if (rank >= pairs) {
        if (!work.offer_to(rank - pairs, to_sum) || !work.take_from(rank - pairs, to_copy, all))
            return;
        if (threadIdx.x == 0) {
            Neighbour{collective, rank - pairs}.ack(to_copy);
            end_block(collective);
        }
        return;
    }
    const int extra = rank + pairs < view.world_size ? rank + pairs : -1;
    if ((extra >= 0 && !work.take_from(extra, to_sum, all)) ||
        !sum_in_pairs(work, rank, pairs, all) || !copy_in_pairs(work, rank, pairs, all) ||
        (extra >= 0 && !work.offer_to(extra, to_copy)))
        return;
    if (threadIdx.x != 0)
        return;
    for (int distance = 1; distance < pairs; distance *= 2)
        if (!part_from(work, rank ^ distance, to_copy))
            return;
    if (extra < 0 || Neighbour{collective, extra}.wait_for_ack(to_copy))
        end_block(collective);
}
// end stub

}  // namespace

void halving_doubling_all_reduce(Peers& peers, float* data, std::size_t count, Stream& stream) {
    // stub: powers_of_two
    //: Task any_ranks is solved here, too: solve it for powers of two first.
    //:
    //: Fill in a Call (operation, type, count; where input and output lie) and call
    //: launch_collective(peers, call, stream, shape_of_transfer(peers, bytes), kernel, ...):
    //: your kernel gets a Collective first, and then what you pass on.
    const Call call{.operation = "halving doubling",
                    .type = element_type<float>(),
                    .count = count,
                    .input = data,
                    .output = data};
    const auto ranks = static_cast<unsigned int>(peers.view().world_size);
    launch_collective(peers, call, stream, shape_of_transfer(peers, call.bytes()),
                      halving_doubling_kernel, count, static_cast<int>(std::bit_floor(ranks)));
    // end stub
}

double halving_doubling_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    // stub: cost
    //: message.alpha_s is what each message takes, message.beta_s_per_byte what each byte does.
    double seconds = 0;
    const auto pairs = static_cast<int>(std::bit_floor(static_cast<unsigned int>(ranks)));
    for (int distance = 1; distance < pairs; distance *= 2)
        seconds += 2 * message.seconds(bytes / static_cast<std::size_t>(2 * distance));
    return pairs == ranks ? seconds : seconds + 2 * message.seconds(bytes);
    // end stub
}

}  // namespace ddp
