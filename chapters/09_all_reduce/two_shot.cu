#include "09_all_reduce/two_shot.hpp"

#include "06_messages/support/copy.cuh"
#include "07_broadcast/collective.cuh"
#include "09_all_reduce/all_ranks.cuh"
#include "09_all_reduce/chunk.hpp"
#include "09_all_reduce/launch_collective.cuh"

namespace ddp {
namespace {

// One thread of each block: we have read what we wanted of the others' data and written what we had
// for them, `bytes` each; then waits until they have, too.
__device__ bool exit_barrier(Collective& collective, std::size_t bytes) {
    const PeersView& view = collective.view;
    CollectiveState& own = view.own().collective_state;
    const bool has_link = view.link.bytes_per_ns > 0;
    LinkTime time{device_clock_ns()};
    for (int j = 0; j < view.world_size - 1; j++) {
        const int peer = next_rank(view, j);
        if (has_link && bytes > 0) {
            time.arrival_ns = 0;
            if (!time.transfer(view, view.rank, peer, bytes))
                return false;
            view.control[peer]->collective_state.arrival_ns[view.rank] = time.arrival_ns;
        }
        tell_acknowledged(collective, peer, 1);
    }
    for (int j = 0; j < view.world_size - 1; j++) {
        const int peer = next_rank(view, j);
        if (!wait_for_acknowledged(collective, peer, 1) ||
            (has_link && !sleep_until(view, own.arrival_ns[peer])))
            return false;
    }
    return true;
}

// Every rank's input and output, in the order of this rank's sum.
template <class T>
struct Sides {
    const T* inputs[most_peers];
    T* outputs[most_peers];
    bool are_aligned;

    __device__ void find(const Collective& collective, std::size_t from, std::size_t to) {
        const PeersView& view = collective.view;
        are_aligned = true;
        for (int j = 0; j < view.world_size; j++) {
            const int peer = next_rank(view, j);
            const BufferOffsets& place = place_of(collective, peer);
            inputs[j] = reinterpret_cast<const T*>(view.data_of(peer, place)) + from;
            outputs[j] = reinterpret_cast<T*>(view.result_of(peer, place)) + to;
            are_aligned = are_aligned && is_aligned(inputs[j]) && is_aligned(outputs[j]);
        }
    }
};

// `from` elements into everyone's input begin the `count` that this rank sums; they go to `to`
// elements into everyone's output, or into this rank's only, which is the last.
template <class T>
__global__ void direct_reduce(Collective collective, ReduceOp op, std::size_t from, std::size_t to,
                              std::size_t count, bool for_all) {
    __shared__ Sides<T> sides;
    __shared__ bool is_met;
    const int ranks = collective.view.world_size;
    const std::size_t bytes = count * sizeof(T);
    if (threadIdx.x == 0) {
        is_met = begin_collective(collective) && handshake_all(collective) &&
                 fetch_over_link(collective.view, bytes);
        if (is_met)
            sides.find(collective, from, to);
    }
    __syncthreads();
    if (!is_met)
        return;
    reduce_chunk(op, sides.inputs, ranks, for_all ? sides.outputs : &sides.outputs[ranks - 1],
                 for_all ? ranks : 1, {0, count}, sides.are_aligned);
    __syncthreads();
    if (threadIdx.x == 0 && exit_barrier(collective, for_all ? bytes : 0))
        end_block(collective);
}

// Copies the others' `bytes` to where they go in this rank's output.
__global__ void direct_gather(Collective collective, std::size_t bytes) {
    __shared__ bool is_met;
    const PeersView& view = collective.view;
    if (threadIdx.x == 0) {
        is_met = begin_collective(collective) && handshake_all(collective) &&
                 fetch_over_link(view, bytes);
    }
    __syncthreads();
    if (!is_met)
        return;
    std::byte* output = view.result_of(view.rank, collective.record);
    for (int j = 0; j < view.world_size; j++) {
        const int peer = next_rank(view, j);
        const std::byte* input = view.data_of(peer, place_of(collective, peer));
        std::byte* target = output + static_cast<std::size_t>(peer) * bytes;
        if (input != target)
            copy_bytes(target, input, bytes);
    }
    __syncthreads();
    if (threadIdx.x == 0 && exit_barrier(collective, 0))
        end_block(collective);
}

}  // namespace

template <class T>
void two_shot_all_reduce(Peers& peers, const T* input, T* output, std::size_t count, ReduceOp op,
                         Stream& stream, const std::string& name) {
    const PeersView& view = peers.view();
    const auto ranks = static_cast<std::size_t>(view.world_size);
    const Chunk chunk = chunk_of(count, ranks, static_cast<std::size_t>(view.rank), sizeof(T));
    const Chunk longest = chunk_of(count, ranks, 0, sizeof(T));
    CollectiveCall call = call_of<T>("all_reduce", op, count, name);
    call.input = input;
    call.output = output;
    call.input_bytes = call.output_bytes = bytes_of_array<T>(count);
    launch_collective(peers, call, stream, shape_of_transfer(peers, longest.size * sizeof(T)),
                      direct_reduce<T>, op, chunk.begin, chunk.begin, chunk.size, true);
}

template <class T>
void reduce_scatter(Peers& peers, const T* input, T* output, std::size_t count, ReduceOp op,
                    Stream& stream, const std::string& name) {
    const PeersView& view = peers.view();
    CollectiveCall call = call_of<T>("reduce_scatter", op, count, name);
    call.input = input;
    call.input_bytes = bytes_of_array<T>(count, static_cast<std::size_t>(view.world_size));
    call.output = output;
    call.output_bytes = bytes_of_array<T>(count);
    launch_collective(peers, call, stream, shape_of_transfer(peers, call.output_bytes),
                      direct_reduce<T>, op, static_cast<std::size_t>(view.rank) * count,
                      std::size_t{0}, count, false);
}

void all_gather(Peers& peers, const AnyArray& input, void* output, Stream& stream,
                const std::string& name) {
    const auto ranks = static_cast<std::size_t>(peers.view().world_size);
    const std::size_t bytes = input.bytes();
    CollectiveCall call{"all_gather", input.count, input.type, name};
    call.input = input.data;
    call.input_bytes = bytes;
    call.output = output;
    call.output_bytes = bytes_of_array<std::byte>(bytes, ranks);
    launch_collective(peers, call, stream, shape_of_transfer(peers, bytes), direct_gather, bytes);
}

#define DDP_DIRECT(T)                                                                       \
    template void two_shot_all_reduce(Peers&, const T*, T*, std::size_t, ReduceOp, Stream&, \
                                      const std::string&);                                  \
    template void reduce_scatter(Peers&, const T*, T*, std::size_t, ReduceOp, Stream&,      \
                                 const std::string&);
DDP_FOR_EACH_ELEMENT(DDP_DIRECT)

}  // namespace ddp
