// The operations that go round one ring of all ranks, as parts of one schedule
// (ring_schedule.cuh). N ranks; the steps with which it begins and ends, and what a rank has before
// and after:
//
//     operation        steps            input           output
//     all_reduce       0 to 2N - 2      all chunks      all chunks, summed
//     reduce_scatter   0 to N - 1       all chunks      this rank's chunk, summed
//     reduce           0 to N - 1       one chunk       the same, summed; of the root only
//     all_gather       N - 1 to 2N - 2  this rank's     all chunks
//     broadcast        N - 1 to 2N - 2  the root's      one chunk
//
// In a reduce and a broadcast only the root's chunk has elements: the whole array.
#include "10_nodes/ring_over_nodes.hpp"

#include <algorithm>

#include "06_messages/support/copy.cuh"
#include "07_broadcast/collective.hpp"
#include "09_all_reduce/all_reduce.cuh"
#include "09_all_reduce/all_reduce.hpp"
#include "10_nodes/ring_schedule.cuh"

namespace ddp {
namespace {

// ---- On the device

// The slice operations of a rank in one ring: its own elements are its input, and a sum that is
// complete goes to its output.
template <class T>
struct RingOperations {
    const RingPlan& plan;
    const ReduceOp op;
    const T* input;
    T* output;

    // All threads. The input lies where it is: nothing has to be made.
    __device__ const T* own(const RingSlice& slice, T*) const {
        return input + (plan.input_is_whole ? slice.chunk.begin : 0) + slice.begin;
    }
    // (A schedule that begins with whole sums keeps them, too.)
    __device__ void send_own(const RingSlice& slice, const T* own, T* slot) const {
        if (plan.first < plan.complete())
            copy_to(slot, own, slice.size);
        else
            copy_and_send(slice, own, slot);
    }
    __device__ void add_and_send(const RingSlice& slice, const T* own, const T* theirs,
                                 T* slot) const {
        // 0 ranks: no average is taken before the sum is complete.
        add_array(op, slot, theirs, own, column_range(slice.size), 0);
    }
    __device__ void complete_and_send(const RingSlice& slice, const T* own, const T* theirs,
                                      T* slot) const {
        add_array(op, result_of(slice), theirs, own, column_range(slice.size), plan.ranks);
        __syncthreads();
        if (slot != nullptr)
            copy_to(slot, result_of(slice), slice.size);
    }
    __device__ void copy_and_send(const RingSlice& slice, const T* sum, T* slot) const {
        if (result_of(slice) != sum)
            copy_to(result_of(slice), sum, slice.size);
        if (slot != nullptr)
            copy_to(slot, sum, slice.size);
    }

  private:
    __device__ T* result_of(const RingSlice& slice) const {
        return output + (plan.output_is_whole ? slice.chunk.begin : 0) + slice.begin;
    }
    __device__ static void copy_to(T* to, const T* from, std::size_t size) {
        copy_by_block(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from),
                      size * sizeof(T));
    }
};

// One block. A run that fails leaves its operation open, for the messages of others.
template <class T>
__global__ void __launch_bounds__(max_ring_threads, 1)
    ring_over_nodes(const __grid_constant__ Collective collective,
                    const __grid_constant__ RingPlan plan, ReduceOp op,
                    const __grid_constant__ FifoSide from_left,
                    const __grid_constant__ FifoSide to_right) {
    const PeersView& view = collective.view;
    RingOperations<T> operations{
        plan, op, reinterpret_cast<const T*>(view.data_of(view.rank, collective.record)),
        reinterpret_cast<T*>(view.result_of(view.rank, collective.record))};
    RingSchedule<T, RingOperations<T>> schedule(collective, plan, operations, from_left, to_right);
    if (schedule.begin() && schedule.run() && threadIdx.x == 0)
        end_operation(view);
}

// ---- On the host

constexpr int channel_of_ring = 1;

}  // namespace

RingOverNodes::RingOverNodes(Peers& peers, NetworkProxy& proxy, const Placement& placement)
    : peers_(peers),
      placement_(placement),
      neighbours_(peers, proxy, placement.ahead(-1), placement.ahead(1), channel_of_ring) {
    // Where ranks were dealt out in turn, the array has the chunks in another order than the ring.
    if (!std::ranges::is_sorted(placement.by_node)) {
        order_ = peers.allocate<int>(placement.by_node.size());
        order_.copy_from(placement.by_node);
    }
}

// `sums` and `copies`: whether the data goes round the first time, and the second time.
RingPlan RingOverNodes::plan_of(bool sums, bool copies, std::size_t chunk,
                                std::size_t total) const {
    RingPlan plan;
    plan.position = placement_.position;
    plan.ranks = static_cast<int>(placement_.by_node.size());
    plan.first = sums ? 0 : plan.ranks - 1;
    plan.last = copies ? 2 * plan.ranks - 2 : plan.ranks - 1;
    plan.chunk = chunk;
    plan.total = total;
    return plan;
}

// Every operation is this launch, with a plan of its own.
template <class T>
void RingOverNodes::launch(const Call& call, RingPlan plan, Stream& stream) {
    cut_into_slices(plan, sizeof(T));
    const Collective collective = Collectives::over(peers_).next(call, stream);
    launch_cooperative(stream, shape_of_one_block(), ring_over_nodes<T>, collective, plan,
                       call.op.value_or(ReduceOp::sum), neighbours_.left(), neighbours_.right());
    peers_.enqueued(stream);
}

// For the types that can be added up.
void RingOverNodes::launch_sum(const Call& call, const RingPlan& plan, Stream& stream) {
    with_type(call.type, [&]<class T>() { launch<T>(call, plan, stream); });
}

// The chunks are those of the ring. Which rank begins with which does not matter: all get all.
void RingOverNodes::all_reduce(const Call& call, Stream& stream) {
    const std::size_t ranks = placement_.by_node.size();
    const Chunk longest = chunk_of(call.count, ranks, 0, bytes_of(call.type));
    RingPlan plan = plan_of(true, true, longest.size, call.count);
    plan.input_is_whole = plan.output_is_whole = true;  // all chunks, before and after
    launch_sum(call, plan, stream);
}

// The array has the chunks in the order of the group, not of the ring.
void RingOverNodes::reduce_scatter(const Call& call, Stream& stream) {
    const std::size_t ranks = placement_.by_node.size();
    RingPlan plan = plan_of(true, false, call.count, ranks * call.count);
    plan.order = order_.data();
    plan.input_is_whole = true;
    launch_sum(call, plan, stream);
}

// The root's chunk is the array; all others are empty, and cost nothing.
void RingOverNodes::reduce(const Call& call, Stream& stream) {
    RingPlan plan = plan_of(true, false, call.count, call.count);
    plan.root = placement_.position_of(call.peer);
    launch_sum(call, plan, stream);
}

// Bytes are enough: nothing is added up.
void RingOverNodes::all_gather(const Call& call, Stream& stream) {
    const std::size_t ranks = placement_.by_node.size();
    RingPlan plan = plan_of(false, true, call.bytes(), ranks * call.bytes());
    plan.order = order_.data();
    plan.output_is_whole = true;
    launch<unsigned char>(call, plan, stream);
}

// Only the root's chunk has elements; it goes round once.
void RingOverNodes::broadcast(const Call& call, Stream& stream) {
    RingPlan plan = plan_of(false, true, call.bytes(), call.bytes());
    plan.root = placement_.position_of(call.peer);
    launch<unsigned char>(call, plan, stream);
}

}  // namespace ddp
