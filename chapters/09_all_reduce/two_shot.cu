// Two-shot all-reduce: rank r reads chunk r of all ranks, sums it, and writes the sum to all ranks.
// For three ranks, what rank 1 does:
//
//     inputs                                 outputs
//     rank 0   │ c0 │ c1 │ c2 │              rank 0   │    │ s1 │    │
//     rank 1   │ c0 │ c1 │ c2 │   read, sum  rank 1   │    │ s1 │    │   write
//     rank 2   │ c0 │ c1 │ c2 │   ─────────▶ rank 2   │    │ s1 │    │
//                      ▲
//     s1 = (rank 2's c1 + rank 0's c1) + rank 1's c1: the ring's order, in registers
//
// reduce_scatter is the first half (the sum goes to this rank's output only), all_gather the second
// (every rank copies what the others have). (PyTorch's symmetric memory and NCCL's device API have
// the same pair, one-shot and two-shot.)
#include "06_messages/support/copy.cuh"
#include "07_broadcast/transfer.cuh"
#include "09_all_reduce/all_reduce.cuh"
#include "09_all_reduce/all_reduce.hpp"

namespace ddp {
namespace {

// Every rank's input and output, in the order of this rank's sum.
template <class T>
struct Sides {
    const T* inputs[max_peers];
    T* outputs[max_peers];
    bool are_aligned;

    __device__ void find(const Collective& collective, std::size_t from, std::size_t to) {
        const PeersView& view = collective.view;
        are_aligned = true;
        for (int j = 0; j < view.world_size; j++) {
            const int peer = next_rank(view, j);
            const BufferOffsets& offsets = offsets_of(collective, peer);
            inputs[j] = reinterpret_cast<const T*>(view.data_of(peer, offsets)) + from;
            outputs[j] = reinterpret_cast<T*>(view.result_of(peer, offsets)) + to;
            are_aligned = are_aligned && is_aligned(inputs[j]) && is_aligned(outputs[j]);
        }
    }
};

// Sums this rank's chunk: `count` elements, which begin at element `from` of every rank's input.
// The sum goes to element `to` of this rank's output, which is the last of `sides`; in two-shot
// (`for_all`) to that of every rank's output.
template <class T>
__global__ void reduce_scatter_kernel(const __grid_constant__ Collective collective, ReduceOp op,
                                      std::size_t from, std::size_t to, std::size_t count,
                                      bool for_all) {
    __shared__ Sides<T> sides;
    __shared__ bool have_all_begun;
    const int ranks = collective.view.world_size;
    const std::size_t bytes = count * sizeof(T);
    // First handshake: where every rank's data lies.
    if (threadIdx.x == 0) {
        have_all_begun = begin_collective(collective) && handshake_all(collective) &&
                         fetch_over_link(collective.view, bytes);
        if (have_all_begun)
            sides.find(collective, from, to);
    }
    __syncthreads();
    if (!have_all_begun)
        return;
    // Shot one: read all inputs. Shot two: write the sum to all outputs.
    if (for_all)
        reduce_chunk<true>(op, sides.inputs, ranks, sides.outputs, {0, count}, sides.are_aligned);
    else
        reduce_chunk<false>(op, sides.inputs, ranks, &sides.outputs[ranks - 1], {0, count},
                            sides.are_aligned);
    __syncthreads();
    // Second handshake: all ranks have read this input and written this output.
    if (threadIdx.x == 0 && exit_barrier(collective, for_all ? bytes : 0))
        end_block(collective);
}

// Copies every rank's `bytes` to their place in this rank's output.
__global__ void all_gather_kernel(const __grid_constant__ Collective collective,
                                  std::size_t bytes) {
    __shared__ bool have_all_begun;
    const PeersView& view = collective.view;
    if (threadIdx.x == 0) {
        have_all_begun = begin_collective(collective) && handshake_all(collective) &&
                         fetch_over_link(view, bytes);
    }
    __syncthreads();
    if (!have_all_begun)
        return;
    std::byte* output = view.result_of(view.rank, collective.record);
    for (int j = 0; j < view.world_size; j++) {
        const int peer = next_rank(view, j);
        const std::byte* input = view.data_of(peer, offsets_of(collective, peer));
        std::byte* target = output + static_cast<std::size_t>(peer) * bytes;
        if (input != target)
            copy_bytes(target, input, bytes);
    }
    __syncthreads();
    if (threadIdx.x == 0 && exit_barrier(collective, 0))
        end_block(collective);
}

// Launches the kernel that sums `count` elements from `from` on.
void launch_reduce(Peers& peers, const Call& call, Stream& stream, std::size_t longest,
                   std::size_t from, std::size_t to, std::size_t count, bool for_all) {
    with_type(call.type, [&]<class T>() {
        launch_collective(peers, call, stream, shape_of_transfer(peers, longest * sizeof(T)),
                          reduce_scatter_kernel<T>, *call.op, from, to, count, for_all);
    });
}

}  // namespace

void two_shot_all_reduce(Peers& peers, const Call& call, Stream& stream) {
    const auto ranks = static_cast<std::size_t>(peers.view().world_size);
    const auto rank = static_cast<std::size_t>(peers.view().rank);
    const Chunk chunk = chunk_of(call.count, ranks, rank, bytes_of(call.type));
    const Chunk longest = chunk_of(call.count, ranks, 0, bytes_of(call.type));
    launch_reduce(peers, call, stream, longest.size, chunk.begin, chunk.begin, chunk.size, true);
}

void reduce_scatter(Peers& peers, const Call& call, Stream& stream) {
    const auto rank = static_cast<std::size_t>(peers.view().rank);
    launch_reduce(peers, call, stream, call.count, rank * call.count, 0, call.count, false);
}

void all_gather(Peers& peers, const Call& call, Stream& stream) {
    launch_collective(peers, call, stream, shape_of_transfer(peers, call.bytes()),
                      all_gather_kernel, call.bytes());
}

}  // namespace ddp
