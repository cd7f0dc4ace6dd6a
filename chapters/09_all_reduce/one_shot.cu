// One-shot all-reduce: every rank stages a copy of its input, reads the copies of all ranks, and
// sums all of it, so that every rank computes every sum.
//
//     input ──copy──▶ staging ──handshake──▶ all ranks' staging ──sum──▶ output
#include <stdexcept>

#include "06_messages/support/copy.cuh"
#include "09_all_reduce/all_reduce.cuh"
#include "09_all_reduce/all_reduce.hpp"

namespace ddp {
namespace {

// Every rank's staged data, by rank, twice: the sum of chunk c begins at rank c + 1, modulo N.
template <class T>
struct Staged {
    const T* data[2 * max_peers];

    __device__ void find(const Collective& collective) {
        const PeersView& view = collective.view;
        for (int i = 0; i < 2 * view.world_size; i++) {
            const int peer = i % view.world_size;
            data[i] = reinterpret_cast<const T*>(view.data_of(peer, offsets_of(collective, peer)) +
                                                 staging_half(collective));
        }
    }
};

// One block. The input may be overwritten as soon as a copy of it is in the staging area, where the
// other ranks read it. There is no exit barrier: the staging area is not written again before the
// next collective but one, which begins with wait_for_previous.
template <class T>
__global__ void one_shot_kernel(const __grid_constant__ Collective collective, ReduceOp op,
                                const T* input, T* output, std::size_t count) {
    __shared__ Staged<T> staged;
    __shared__ bool goes_on;
    const PeersView& view = collective.view;
    const auto ranks = static_cast<std::size_t>(view.world_size);
    if (threadIdx.x == 0)
        goes_on = wait_for_previous(collective);
    __syncthreads();
    if (!goes_on)
        return;
    // Phase 1: stage a copy of the input.
    copy_bytes(view.data_of(view.rank, collective.record) + staging_half(collective),
               reinterpret_cast<const std::byte*>(input), count * sizeof(T));
    __syncthreads();
    // Phase 2: the one handshake.
    if (threadIdx.x == 0) {
        goes_on = begin_collective(collective) && handshake_all(collective) &&
                  fetch_over_link(view, count * sizeof(T));
        if (goes_on)
            staged.find(collective);
    }
    __syncthreads();
    if (!goes_on)
        return;
    // Phase 3: sum all chunks, in the ring's order.
    for (std::size_t c = 0; c < ranks; c++)  // staged data is aligned
        reduce_chunk<false>(op, &staged.data[c + 1], view.world_size, &output,
                            chunk_of(count, ranks, c, sizeof(T)), is_aligned(output));
    __syncthreads();
    if (threadIdx.x == 0)
        end_block(collective);
}

}  // namespace

void one_shot_all_reduce(Peers& peers, const Call& call, Stream& stream) {
    const std::size_t most = Collectives::max_staged / bytes_of(call.type);
    if (call.count > most)
        throw std::invalid_argument("one_shot_all_reduce of " + std::to_string(call.count) + " " +
                                    name_of(call.type) + ": it is for up to " +
                                    std::to_string(most));
    Call staged = call;
    staged.input = Collectives::over(peers).staging();
    staged.outputs = 0;
    with_type(call.type, [&]<class T>() {
        launch_collective(peers, staged, stream,
                          kernels_run_on_cpu ? shape_on_cpu(1) : LaunchShape(1, 512),
                          one_shot_kernel<T>, *call.op, static_cast<const T*>(call.input),
                          static_cast<T*>(call.output), call.count);
    });
}

}  // namespace ddp
