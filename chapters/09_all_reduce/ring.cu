#include "09_all_reduce/ring.hpp"

#include "07_broadcast/transfer.cuh"
#include "09_all_reduce/chunk.hpp"
#include "09_all_reduce/launch_collective.cuh"
#include "09_all_reduce/pack.cuh"
#include "09_all_reduce/two_shot.hpp"

namespace ddp {
namespace {

// What is passed on at a time: small enough to be still in the cache of whoever reads it next, and
// large enough for the flags not to matter.
constexpr std::size_t slice_bytes = kernels_run_on_cpu ? 64 << 10 : 512 << 10;

// A rank's place in the ring, and how the data is cut.
struct Ring {
    int rank, left, right, world_size;
    std::size_t count, element_bytes, slice, slices;  // elements of a slice; slices of a chunk

    __device__ Ring(const PeersView& view, std::size_t count, std::size_t element_bytes)
        : rank(view.rank),
          left((view.rank + view.world_size - 1) % view.world_size),
          right((view.rank + 1) % view.world_size),
          world_size(view.world_size),
          count(count),
          element_bytes(element_bytes),
          slice(slice_bytes / element_bytes) {
        // Over the simulated link all ports are busy anyway, and each message has its latency.
        if (view.link.bytes_per_ns > 0 && slice < chunk(0).size)
            slice = chunk(0).size;
        slices = (chunk(0).size + slice - 1) / slice;
    }

    // The steps: N - 1 that sum, and N - 1 that copy.
    __device__ int steps() const { return 2 * (world_size - 1); }
    __device__ bool is_sum(int step) const { return step < world_size - 1; }
    __device__ bool is_last_sum(int step) const { return step == world_size - 2; }

    __device__ Chunk chunk(int i) const {
        return chunk_of(count, static_cast<std::size_t>(world_size), static_cast<std::size_t>(i),
                        element_bytes);
    }
    // This block's share of slice `i` of the chunk that this rank receives in step `step`. Chunk c
    // starts at rank c + 1; in step 0 rank c + 2 receives it, and so on: rank r receives chunk
    // r - 2 - step. The second time round, rank c has it first.
    __device__ Chunk received(int step, std::size_t i) const {
        const Chunk all = chunk((rank - 2 - step + 3 * world_size) % world_size);
        const std::size_t begin = i * slice < all.size ? i * slice : all.size;
        const std::size_t size = slice < all.size - begin ? slice : all.size - begin;
        const Slice share =
            block_share({(all.begin + begin) * element_bytes, size * element_bytes});
        return {share.begin / element_bytes, share.bytes / element_bytes};
    }
    // How many slices the left neighbour must have done before this one can be read.
    __device__ std::uint64_t needed(int step, std::size_t i) const {
        return step == 0 ? 0 : static_cast<std::uint64_t>(step - 1) * slices + i + 1;
    }
};

// All threads of a block: to[i] = op(theirs[i], own[i]), or theirs[i] if it is not to be summed.
template <ReduceOp op, class Element>
__device__ void take_elements(void* to, const void* theirs, const void* own, std::size_t count,
                              bool is_sum, int divide_by) {
    auto* target = static_cast<Element*>(to);
    for (std::size_t i : column_range(count)) {
        Element value = static_cast<const Element*>(theirs)[i];
        if (is_sum) {
            const Element mine = static_cast<const Element*>(own)[i];
            add_to<op>(value, mine);  // of a copy, which is loaded as a whole
        }
        if (divide_by > 1)
            finish_sum<op>(value, divide_by);
        target[i] = value;
    }
}

template <class T>
__device__ void take_slice(ReduceOp op, T* to, const T* theirs, const T* own, std::size_t count,
                           bool is_sum, int divide_by) {
    const std::size_t packs =
        is_aligned(to) && is_aligned(theirs) && is_aligned(own) ? count / Pack<T>::size : 0;
    const std::size_t done = packs * Pack<T>::size;
    with_op(op, [&]<ReduceOp o>() {
        take_elements<o, Pack<T>>(to, theirs, own, packs, is_sum, divide_by);
        take_elements<o, T>(to + done, theirs + done, own + done, count - done, is_sum, divide_by);
    });
}

// One thread: this block's share of slice `i` of step `step` can be read.
__device__ bool wait_for_slice(Collective& collective, const Ring& ring, int step, std::size_t i) {
    return step == 0 || wait_for_ready(collective, ring.left, ring.needed(step, i));
}

template <class T>
__global__ void ring_kernel(Collective collective, ReduceOp op, std::size_t count) {
    __shared__ bool may_go_on;
    const PeersView& view = collective.view;
    const Ring ring(view, count, sizeof(T));
    std::uint64_t now_ns = link_time(collective);
    if (threadIdx.x == 0) {
        may_go_on = begin_collective(collective) && handshake(collective, ring.left) &&
                    handshake(collective, ring.right);
    }
    __syncthreads();
    if (!may_go_on)
        return;
    const OperationRecord& record = collective.record;
    const BufferOffsets& theirs = place_of(collective, ring.left);
    const auto* own_input = reinterpret_cast<const T*>(view.data_of(view.rank, record));
    auto* output = reinterpret_cast<T*>(view.result_of(view.rank, record));
    const auto* left_input = reinterpret_cast<const T*>(view.data_of(ring.left, theirs));
    const auto* left_output = reinterpret_cast<const T*>(view.result_of(ring.left, theirs));
    for (int step = 0; step < ring.steps(); step++) {
        const T* left_data = step == 0 ? left_input : left_output;
        const int divide_by = ring.is_last_sum(step) ? ring.world_size : 1;
        for (std::size_t i = 0; i < ring.slices; i++) {
            if (threadIdx.x == 0)
                may_go_on = wait_for_slice(collective, ring, step, i);
            __syncthreads();
            if (!may_go_on)
                return;
            const Chunk slice = ring.received(step, i);
            take_slice<T>(op, output + slice.begin, left_data + slice.begin,
                          own_input + slice.begin, slice.size, ring.is_sum(step), divide_by);
            __syncthreads();
            if (threadIdx.x != 0)
                continue;
            if (is_over_link(collective))
                spend_time_on_link(collective, ring.left, slice.size * sizeof(T), now_ns);
            pass_on_time(collective, ring.right, now_ns);
            tell_ready(collective, ring.right,
                       static_cast<std::uint64_t>(step) * ring.slices + i + 1);
        }
    }
    // Our data may be overwritten once the right neighbour has read the last of it.
    if (threadIdx.x == 0) {
        tell_acknowledged(collective, ring.left, 1);
        if (wait_for_acknowledged(collective, ring.right, 1))
            end_block(collective);
    }
}

}  // namespace

template <class T>
void ring_all_reduce(Peers& peers, const T* input, T* output, std::size_t count, ReduceOp op,
                     Stream& stream, const std::string& name) {
    CollectiveCall call = call_of<T>("ring all_reduce", op, count, name);
    call.input = input;
    call.output = output;
    call.input_bytes = call.output_bytes = bytes_of_array<T>(count);
    const int ranks = peers.view().world_size;
    if (ranks == 1)  // no neighbour to wait for
        return two_shot_all_reduce(peers, input, output, count, op, stream, name);
    launch_collective(peers, call, stream,
                      shape_of_transfer(peers, call.input_bytes / static_cast<std::size_t>(ranks)),
                      ring_kernel<T>, op, count);
}

#define DDP_RING(T)                                                                     \
    template void ring_all_reduce(Peers&, const T*, T*, std::size_t, ReduceOp, Stream&, \
                                  const std::string&);
DDP_FOR_EACH_ELEMENT(DDP_RING)

}  // namespace ddp
