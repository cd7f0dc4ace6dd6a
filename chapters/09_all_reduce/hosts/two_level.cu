// The slices of one chunk of rail l, as local rank l of a host works on them:
//
//     first          slot  = a[l+1] + ... + a[l]                 reduce-scatter of step 1, and send
//     add            slot  = left + (a[l+1] + ... + a[l])        the ring's sum grows by this
//     host's
//       complete     ... for all arrays of the host: = slot      all-gather of step 3, and send
//     copy           for all arrays: = left;  slot = left        the ring's second time round
//
// a[0] ... a[L-1] are the arrays of the host's ranks, which lie in memory that it can read and
// write; `left` is the slot that its left neighbour on the rail has filled.
#include "09_all_reduce/hosts/two_level.hpp"

#include "06_messages/support/copy.cuh"
#include "07_broadcast/collective.hpp"
#include "09_all_reduce/all_ranks.cuh"
#include "09_all_reduce/hosts/ring_walk.cuh"

namespace ddp {
namespace {

// The arrays of the ranks of this host, from the next rank round to this one; in shared memory.
template <class T>
struct NearArrays {
    const T* inputs[most_peers];
    T* outputs[most_peers];
    const T* slices[most_peers];  // where the slice at hand begins in `inputs`
    bool are_aligned;

    // One thread, after the handshakes.
    __device__ void find(const Collective& collective, const RingPlan& plan) {
        const PeersView& view = collective.view;
        const int ranks = plan.near_end - plan.near_begin, local = view.rank - plan.near_begin;
        are_aligned = true;
        for (int j = 0; j < ranks; j++) {
            const int peer = plan.near_begin + (local + 1 + j) % ranks;
            const BufferOffsets& place = place_of(collective, peer);
            inputs[j] = reinterpret_cast<const T*>(view.data_of(peer, place));
            outputs[j] = reinterpret_cast<T*>(view.result_of(peer, place));
            are_aligned = are_aligned && is_aligned(inputs[j]);
        }
    }
};

// The work of one rank on both levels.
template <class T>
class TwoLevelWork {
  public:
    __device__ TwoLevelWork(const RingPlan& plan, ReduceOp op, NearArrays<T>& arrays)
        : plan_(plan), op_(op), ranks_(plan.near_end - plan.near_begin), arrays_(arrays) {}

    // All threads: a partial sum has come along the rail.
    __device__ void add(const RingSlice& slice, const T* theirs, T* slot, bool is_complete) {
        sum_host(slice, slot);
        __syncthreads();
        add_array(op_, slot, theirs, slot, column_range(slice.size),
                  is_complete ? plan_.ranks * ranks_ : 0);
        __syncthreads();
        if (is_complete)
            give_to_host(slice, slot);
    }
    // All threads: a sum has come, or this host's own leaves.
    __device__ void copy(const RingSlice& slice, const T* theirs, T* slot, bool) {
        if (theirs == nullptr)
            return sum_host(slice, slot);
        give_to_host(slice, theirs);
        if (slot != nullptr)
            copy_slice(slot, theirs, slice.size);
    }

  private:
    // Step 1: the sum of the host's arrays. It is divided on the rail, at the end.
    __device__ void sum_host(const RingSlice& slice, T* slot) {
        const std::size_t skip = slice.chunk.begin + slice.begin;
        for (std::size_t j : column_range(static_cast<std::size_t>(ranks_)))
            arrays_.slices[j] = arrays_.inputs[j] + skip;
        __syncthreads();
        reduce_chunk<false>(op_ == ReduceOp::average ? ReduceOp::sum : op_, arrays_.slices, ranks_,
                            &slot, {0, slice.size}, arrays_.are_aligned);
    }
    // Step 3.
    __device__ void give_to_host(const RingSlice& slice, const T* sum) {
        for (int j = 0; j < ranks_; j++)
            copy_slice(arrays_.outputs[j] + slice.chunk.begin + slice.begin, sum, slice.size);
    }
    __device__ static void copy_slice(T* to, const T* from, std::size_t size) {
        copy_by_block(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from),
                      size * sizeof(T));
    }

    const RingPlan& plan_;
    const ReduceOp op_;
    const int ranks_;  // of this host
    NearArrays<T>& arrays_;
};

// One thread: waits until no rank of this host reads or writes this rank's arrays any more.
__device__ bool leave_host(const Collective& collective, const RingPlan& plan) {
    const int self = collective.view.rank;
    for (int r = plan.near_begin; r < plan.near_end; r++)
        if (r != self)
            raise_acknowledged(collective, r, 1);
    for (int r = plan.near_begin; r < plan.near_end; r++)
        if (r != self && !wait_for_acknowledged(collective, r, 1))
            return false;
    return true;
}

template <class T>
__global__ void __launch_bounds__(most_ring_threads)
    two_level_kernel(const __grid_constant__ Collective collective,
                     const __grid_constant__ RingPlan plan, ReduceOp op,
                     const __grid_constant__ FifoSide from_left,
                     const __grid_constant__ FifoSide to_right) {
    __shared__ NearArrays<T> arrays;
    TwoLevelWork<T> work(plan, op, arrays);
    RingWalk<T, TwoLevelWork<T>> walk(collective, plan, work, from_left, to_right);
    if (!walk.begin())
        return;
    if (threadIdx.x == 0)
        arrays.find(collective, plan);
    __syncthreads();
    if (walk.go() && threadIdx.x == 0 && leave_host(collective, plan))
        end_operation(collective.view);
}

// ---- On the host

constexpr int channel_of_rail = 3;

// Returns the rank of this rank's rail that is `distance` hosts further.
int on_rail(const Placement& placement, int distance) {
    const int ranks = static_cast<int>(placement.by_host.size());
    const int position = placement.position + distance * placement.sizes[0];
    return placement.by_host[static_cast<std::size_t>((position + ranks) % ranks)];
}

}  // namespace

TwoLevelAllReduce::TwoLevelAllReduce(Peers& peers, NetworkProxy& proxy, const Placement& placement)
    : peers_(peers),
      hosts_(static_cast<int>(placement.sizes.size())),
      ranks_per_host_(placement.sizes[0]),
      host_(placement.position / ranks_per_host_),
      local_rank_(placement.position % ranks_per_host_),
      near_begin_(peers.view().rank - local_rank_),
      neighbours_(peers, proxy, on_rail(placement, -1), on_rail(placement, 1), channel_of_rail) {}

void TwoLevelAllReduce::all_reduce(const Call& call, Stream& stream) {
    RingPlan plan;
    plan.position = host_;
    plan.ranks = hosts_;
    plan.last = 2 * hosts_ - 2;
    const auto chunks = static_cast<std::size_t>(peers_.group().size());
    plan.chunk = chunk_of(call.count, chunks, 0, bytes_of(call.type)).size;
    plan.total = call.count;
    plan.stride = ranks_per_host_;
    plan.offset = local_rank_;
    plan.near_begin = near_begin_;
    plan.near_end = near_begin_ + ranks_per_host_;
    cut_into_slices(plan, bytes_of(call.type));
    const Collective collective = Collectives::over(peers_).next(call, stream);
    with_type(call.type, [&]<class T>() {
        launch_cooperative(stream, shape_of_walk(), two_level_kernel<T>, collective, plan, *call.op,
                           neighbours_.left(), neighbours_.right());
    });
    peers_.enqueued(stream);
}

}  // namespace ddp
