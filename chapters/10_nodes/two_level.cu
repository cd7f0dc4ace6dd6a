// A slice of one chunk of rail l, as local rank l of a node works on it. A chunk goes round H nodes
// (ring_schedule.cuh); a[0] ... a[L-1] are the arrays of the node's ranks, which lie in memory that
// it can read and write.
//
//     step       operation           1. reduce-scatter          2. ring            3. all-gather
//     0          send_own            slot = a[l+1]+...+a[l]     ──▶
//     1 to H-2   add_and_send        slot = a[l+1]+...+a[l]     slot += theirs ──▶
//     H-1        complete_and_send   slot = a[l+1]+...+a[l]     slot += theirs ──▶  all a = slot
//     H to 2H-3  copy_and_send                                  slot = theirs  ──▶  all a = theirs
//     2H-2       copy_and_send                                                      all a = theirs
#include "10_nodes/two_level.hpp"

#include "10_nodes/local_arrays.cuh"

namespace ddp {
namespace {

// The slice operations of one rank on both levels, by all threads of the block.
template <class T>
class TwoLevelOperations {
  public:
    __device__ TwoLevelOperations(const RingPlan& plan, ReduceOp op, LocalArrays<T>& arrays)
        : plan_(plan), op_(op), arrays_(arrays) {}

    // Stage 1: the sum of the node's arrays is this rank's own part of the ring.
    __device__ const T* own(const RingSlice& slice, T* slot) {
        arrays_.sum(op_, slice, slot);
        __syncthreads();
        return slot;
    }
    // Stage 2 adds this node's sum; stage 3 begins where the sum over all nodes is complete.
    __device__ void send_own(const RingSlice&, const T*, T*) {}  // it is in the slot
    __device__ void add_and_send(const RingSlice& slice, const T* own, const T* theirs, T* slot) {
        add_array(op_, slot, theirs, own, column_range(slice.size), 0);
    }
    __device__ void complete_and_send(const RingSlice& slice, const T* own, const T* theirs,
                                      T* slot) {
        add_array(op_, slot, theirs, own, column_range(slice.size), plan_.ranks * arrays_.ranks);
        __syncthreads();
        arrays_.give(slice, slot);
    }
    // Stage 3, as the sums go round.
    __device__ void copy_and_send(const RingSlice& slice, const T* theirs, T* slot) {
        arrays_.give(slice, theirs);
        if (slot != nullptr)
            arrays_.copy_slice(slot, theirs, slice.size);
    }

  private:
    const RingPlan& plan_;
    const ReduceOp op_;
    LocalArrays<T>& arrays_;
};

template <class T>
__global__ void __launch_bounds__(max_ring_threads, 1)
    two_level_kernel(const __grid_constant__ Collective collective,
                     const __grid_constant__ RingPlan plan, ReduceOp op,
                     const __grid_constant__ FifoSide from_left,
                     const __grid_constant__ FifoSide to_right) {
    __shared__ LocalArrays<T> arrays;
    TwoLevelOperations<T> operations(plan, op, arrays);
    RingSchedule<T, TwoLevelOperations<T>> schedule(collective, plan, operations, from_left,
                                                    to_right);
    if (!schedule.begin())
        return;
    if (threadIdx.x == 0)  // the calls of the node's ranks say where their arrays are
        arrays.find(collective, plan);
    __syncthreads();
    if (schedule.run() && threadIdx.x == 0 && leave_node(collective, plan))
        end_operation(collective.view);
}

// ---- On the host

constexpr int channel_of_rail = 3;

// Returns the plan of an all-reduce for the ring of this rank's rail. `placement` is even.
RingPlan plan_of_rail(const Peers& peers, const Placement& placement, const Call& call) {
    RingPlan plan;
    // The ring has one rank per node, which sends its rail's part of the array.
    plan.position = placement.node();
    plan.ranks = placement.nodes();
    plan.last = 2 * placement.nodes() - 2;
    const std::size_t chunks = placement.by_node.size();
    plan.chunk = chunk_of(call.count, chunks, 0, bytes_of(call.type)).size;
    plan.total = call.count;
    plan.stride = placement.sizes[0];
    plan.offset = placement.local_rank();
    plan.local_begin = peers.view().rank - placement.local_rank();
    plan.local_end = plan.local_begin + placement.sizes[0];
    cut_into_slices(plan, bytes_of(call.type));
    return plan;
}

}  // namespace

TwoLevelAllReduce::TwoLevelAllReduce(Peers& peers, NetworkProxy& proxy, const Placement& placement)
    : peers_(peers),
      placement_(placement),
      neighbours_(peers, proxy, placement.on_rail(-1), placement.on_rail(1), channel_of_rail) {}

void TwoLevelAllReduce::all_reduce(const Call& call, Stream& stream) {
    const RingPlan plan = plan_of_rail(peers_, placement_, call);
    const Collective collective = Collectives::over(peers_).next(call, stream);
    with_type(call.type, [&]<class T>() {
        launch_cooperative(stream, shape_of_one_block(), two_level_kernel<T>, collective, plan,
                           *call.op, neighbours_.left(), neighbours_.right());
    });
    peers_.enqueued(stream);
}

}  // namespace ddp
