// The tree of a broadcast, the other way round. For five ranks and root 0:
//
//     step 1   0 ◀── 1    2 ◀── 3    4      x0 + x1      x2 + x3        x4
//     step 2   0 ◀────────2          4      (x0 + x1) + (x2 + x3)       x4
//     step 3   0 ◀───────────────────4      ((x0 + x1) + (x2 + x3)) + x4
//
// The lower ranks' sum is always the left operand. The data goes in slices: a rank between the
// leaves and the root keeps some slices of its sums in its staging area, where its parent reads
// them while the next ones are added.
#include "08_reduce/tree_reduce.hpp"

#include <algorithm>
#include <bit>

#include "07_broadcast/topology.hpp"
#include "07_broadcast/transfer.cuh"

namespace ddp {
namespace {

// A rank between the leaves and the root keeps its sums in its staging area until its parent has
// added them: `slots` slices at a time.
constexpr std::size_t slots = 4, slot_bytes = Collectives::max_staged / slots;

// Returns how many slices `bytes` are cut into; an empty array is one.
std::size_t slices_of(std::size_t bytes, std::size_t slice_bytes) {
    return std::max<std::size_t>((bytes + slice_bytes - 1) / slice_bytes, 1);
}

// A rank's neighbours in the tree. The data goes from the children to the parent.
struct Branch {
    Topology topology;
    bool is_leaf[max_peers] = {};  // child i has nothing but its input
    std::size_t bytes = 0;
    int slices = 1;
    std::size_t longest_slice = 0;
};

// Returns "(x0+x1)+x2" of `ranks` ranks, the first of which is `first`, without the outer brackets.
std::string order_of(int first, int ranks) {
    if (ranks == 1)
        return "x" + std::to_string(first);
    const int half = static_cast<int>(std::bit_ceil(static_cast<unsigned int>(ranks)) / 2);
    const std::string left = order_of(first, half), right = order_of(first + half, ranks - half);
    const auto bracketed = [](const std::string& sum, int terms) {
        return terms > 1 ? "(" + sum + ")" : sum;
    };
    return bracketed(left, half) + "+" + bracketed(right, ranks - half);
}

// ---- On the device

// Returns this block's share of a slice, counted from the slice's beginning. Slices are not all of
// one length, but a block's share begins at the same place in each of them. So a slot's next slice
// overwrites only what the same block of the parent has read.
__device__ Slice share_within(const Slice& slice, std::size_t longest_slice) {
    const Slice longest = slice_of(longest_slice, gridDim.x, blockIdx.x);
    const std::size_t end = longest.begin + longest.bytes;
    const std::size_t last = end < slice.bytes ? end : slice.bytes;
    return {longest.begin, last > longest.begin ? last - longest.begin : 0};
}

// Returns the address of slice `step` in a staging area, `skip` bytes into its slot.
__device__ std::byte* slot_of(const Collective& collective, std::byte* staging, int step,
                              std::size_t skip) {
    return staging + staging_half(collective) +
           static_cast<std::size_t>(step - 1) % slots * slot_bytes + skip;
}

// Computes to = a op b with all threads of a block; `to` may be a or b. Divides an average by
// `ranks`, which is 1 in all additions but the last.
template <class T>
__device__ void combine_by_block(ReduceOp op, T* to, const T* a, const T* b, std::size_t count,
                                 int ranks) {
    with_op(op, [&]<ReduceOp o>() {
        for (std::size_t i : column_range(count))
            to[i] = finish<o>(combine<o>(a[i], b[i]), ranks);
    });
}

// Waits, with all threads of a block, until the parent has read what the slot of `step` holds.
__device__ bool wait_for_slot(Neighbour& parent, int step) {
    __shared__ bool is_free;
    constexpr int slot_count = static_cast<int>(slots);
    if (threadIdx.x == 0)
        is_free = step <= slot_count ||
                  parent.wait_for_ack(static_cast<std::uint64_t>(step - slot_count));
    __syncthreads();
    return is_free;
}

// Adds up slice `step` of this rank and all ranks below it, at `to`. All threads of a block call
// it. Returns false if the run fails.
template <class T>
__device__ bool gather_slice(const Collective& collective, ReduceOp op, const Branch& branch,
                             int step, const Slice& share, std::size_t skip, T* to) {
    const PeersView& view = collective.view;
    const auto* mine =
        reinterpret_cast<const T*>(view.data_of(view.rank, collective.record) + share.begin);
    const std::size_t count = share.bytes / sizeof(T);
    // A broadcast serves the largest group first; here it comes last.
    for (int i = branch.topology.children - 1; i >= 0; i--) {
        Neighbour child{collective, branch.topology.child[i]};
        const int ranks = branch.topology.parent < 0 && i == 0 ? view.world_size : 1;
        const auto combine_with = [&](const std::byte* input) {
            const std::byte* from = branch.is_leaf[i]
                                        ? input + share.begin
                                        : slot_of(collective, child.output(), step, skip);
            const auto* theirs = reinterpret_cast<const T*>(from);
            if (child.rank < view.rank)
                combine_by_block(op, to, theirs, mine, count, ranks);
            else
                combine_by_block(op, to, mine, theirs, count, ranks);
        };
        if (!child.consume(static_cast<std::uint64_t>(step), share.bytes, combine_with))
            return false;
        if (threadIdx.x == 0)
            child.ack(static_cast<std::uint64_t>(step));
        mine = to;
    }
    return true;
}

template <class T>
__global__ void tree_reduce_kernel(const __grid_constant__ Collective collective, ReduceOp op,
                                   const __grid_constant__ Branch branch) {
    const PeersView& view = collective.view;
    Neighbour parent{collective, branch.topology.parent};
    const bool has_parent = branch.topology.parent >= 0;
    std::byte* result = view.result_of(view.rank, collective.record);
    bool all_came = threadIdx.x != 0 || begin_collective(collective);
    for (int step = 1; step <= branch.slices; step++) {
        const Slice slice = slice_of(branch.bytes, static_cast<std::size_t>(branch.slices),
                                     static_cast<std::size_t>(step - 1));
        const auto [skip, bytes] = share_within(slice, branch.longest_slice);
        const Slice share{slice.begin + skip, bytes};
        if (branch.topology.children > 0) {
            // Consume: add the children's slices to this rank's, in a free slot or, at the root, in
            // the output.
            if (has_parent && !wait_for_slot(parent, step))
                return;
            std::byte* to =
                has_parent ? slot_of(collective, result, step, skip) : result + share.begin;
            if (!gather_slice(collective, op, branch, step, share, skip, reinterpret_cast<T*>(to)))
                return;
        } else if (!has_parent) {  // the only rank
            copy_by_block(result + share.begin,
                          view.data_of(view.rank, collective.record) + share.begin, share.bytes);
        }
        // Post: the parent can read the sum of this rank and all below it.
        if (threadIdx.x == 0 && has_parent)
            all_came = all_came && parent.post(static_cast<std::uint64_t>(step));
    }
    // Exit barrier: the parent has read the last slice.
    if (threadIdx.x == 0 && all_came &&
        (!has_parent || parent.wait_for_ack(static_cast<std::uint64_t>(branch.slices))))
        end_block(collective);
}

}  // namespace

// ---- On the host

void tree_reduce(Peers& peers, const Call& call, Stream& stream) {
    tree_reduce(peers, call, stream, slot_bytes);
}

void tree_reduce(Peers& peers, const Call& asked, Stream& stream, std::size_t slice_bytes) {
    Call call = asked;
    call.operation = "tree reduce";
    const int root = require_root(peers, call);
    const int rank = peers.view().rank, ranks = peers.view().world_size;
    Branch branch{tree_topology(rank, ranks, root)};
    for (int i = 0; i < branch.topology.children; i++)
        branch.is_leaf[i] = tree_topology(branch.topology.child[i], ranks, root).children == 0;
    branch.bytes = call.bytes();
    branch.slices = static_cast<int>(slices_of(branch.bytes, slice_bytes));
    const auto slices = static_cast<std::size_t>(branch.slices);
    // The last one: slice_of rounds down where it cuts.
    branch.longest_slice = (slice_of(branch.bytes, slices, slices - 1).bytes + slice_unit - 1) /
                           slice_unit * slice_unit;
    if (rank != root) {  // what others read is the staging area
        call.output = Collectives::over(peers).staging();
        call.outputs = 0;
    }
    with_type(call.type, [&]<class T>() {
        launch_collective(peers, call, stream,
                          shape_of_transfer(peers, std::min(branch.bytes, slice_bytes)),
                          tree_reduce_kernel<T>, *call.op, branch);
    });
}

std::string tree_order(int ranks) {
    return order_of(0, ranks);
}

double tree_reduce_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    // The levels of the tree follow each other; on each, all slices pass one port.
    const double steps = std::bit_width(static_cast<unsigned int>(ranks - 1));
    const auto slices = static_cast<double>(slices_of(bytes, slot_bytes));
    return steps *
           (slices * message.alpha_s + static_cast<double>(bytes) * message.beta_s_per_byte);
}

}  // namespace ddp
