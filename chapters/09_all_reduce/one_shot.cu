#include "09_all_reduce/one_shot.hpp"

#include <stdexcept>

#include "06_messages/support/copy.cuh"
#include "09_all_reduce/all_ranks.cuh"
#include "09_all_reduce/chunk.hpp"
#include "09_all_reduce/launch_collective.cuh"

namespace ddp {
namespace {

// Everyone's staged data, by rank, twice: the sum of chunk c begins at rank c + 1 and goes round.
template <class T>
struct Staged {
    const T* data[2 * most_peers];

    __device__ void find(const Collective& collective) {
        const PeersView& view = collective.view;
        for (int i = 0; i < 2 * view.world_size; i++) {
            const int peer = i % view.world_size;
            data[i] = reinterpret_cast<const T*>(view.data_of(peer, place_of(collective, peer)));
        }
    }
};

// One block. The input may be overwritten as soon as a copy of it is where the others read. Nobody
// waits for them to have read that: nothing is written there before the next operation but one.
template <class T>
__global__ void one_shot(Collective collective, ReduceOp op, const T* input, T* output,
                         std::size_t count) {
    __shared__ Staged<T> staged;
    __shared__ bool may_go_on;
    const PeersView& view = collective.view;
    const auto ranks = static_cast<std::size_t>(view.world_size);
    if (threadIdx.x == 0)
        may_go_on = wait_for_last_but_one(collective);
    __syncthreads();
    if (!may_go_on)
        return;
    copy_bytes(view.data_of(view.rank, collective.record),
               reinterpret_cast<const std::byte*>(input), count * sizeof(T));
    __syncthreads();
    if (threadIdx.x == 0) {
        may_go_on = begin_collective(collective) && handshake_all(collective) &&
                    fetch_over_link(view, count * sizeof(T));
        if (may_go_on)
            staged.find(collective);
    }
    __syncthreads();
    if (!may_go_on)
        return;
    for (std::size_t c = 0; c < ranks; c++)  // staged data is aligned
        reduce_chunk(op, &staged.data[c + 1], view.world_size, &output, 1,
                     chunk_of(count, ranks, c, sizeof(T)), is_aligned(output));
    __syncthreads();
    if (threadIdx.x == 0)
        end_block(collective);
}

}  // namespace

template <class T>
void one_shot_all_reduce(Peers& peers, const T* input, T* output, std::size_t count, ReduceOp op,
                         Stream& stream, const std::string& name) {
    if (count > Peers::most_staged / sizeof(T))
        throw std::invalid_argument("one_shot_all_reduce of " + std::to_string(count) + " " +
                                    type_name<T>() + ": it is for up to " +
                                    std::to_string(Peers::most_staged / sizeof(T)));
    CollectiveCall call = call_of<T>("all_reduce", op, count, name);
    call.input = peers.staging();
    call.input_bytes = bytes_of_array<T>(count);
    launch_collective(peers, call, stream, {dim3(1), dim3(kernels_run_on_cpu ? 1 : 512)},
                      one_shot<T>, op, input, output, count);
}

#define DDP_ONE_SHOT(T)                                                                     \
    template void one_shot_all_reduce(Peers&, const T*, T*, std::size_t, ReduceOp, Stream&, \
                                      const std::string&);
DDP_FOR_EACH_ELEMENT(DDP_ONE_SHOT)

}  // namespace ddp
