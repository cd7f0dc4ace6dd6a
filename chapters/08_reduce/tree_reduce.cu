#include "08_reduce/tree_reduce.hpp"

#include <algorithm>
#include <bit>

#include "07_broadcast/topology.hpp"
#include "07_broadcast/transfer.cuh"

namespace ddp {
namespace {

// A rank between the leaves and the root keeps its sums in its staging area, from where the next
// one takes them: so many slices at a time.
constexpr std::size_t slots = 4, slot_bytes = Peers::most_staged / slots;

std::size_t slices_of(std::size_t bytes) {
    return std::max<std::size_t>((bytes + slot_bytes - 1) / slot_bytes, 1);
}

// A rank's place in the tree. The data goes from the children to the parent.
struct Branch {
    Topology topology;
    bool is_leaf[most_peers] = {};  // child i has nothing but its input
    std::size_t bytes = 0;
    int slices = 1;
};

// "(x0+x1)+x2" of the `ranks` ranks from `first` on, without the outer brackets.
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

// Where slice `step` of this block's share begins in the staging area at `staging`.
__device__ std::byte* slot_of(std::byte* staging, int step, std::size_t skip) {
    return staging + static_cast<std::size_t>(step - 1) % slots * slot_bytes + skip;
}

// All threads of a block: to = a op b. `to` may be a or b. `ranks` is 1 until the end.
template <class T>
__device__ void combine_by_block(ReduceOp op, T* to, const T* a, const T* b, std::size_t count,
                                 int ranks) {
    with_op(op, [&]<ReduceOp o>() {
        for (std::size_t i : column_range(count))
            to[i] = finish<o>(combine<o>(a[i], b[i]), ranks);
    });
}

// All threads of a block: until the parent has taken what was in the slot of `step` before.
__device__ bool wait_for_slot(Collective& collective, int parent, int step, std::uint64_t& now_ns) {
    __shared__ bool is_free;
    if (threadIdx.x == 0)
        is_free =
            step <= static_cast<int>(slots) ||
            wait_until_acknowledged(collective, parent, step - static_cast<int>(slots), now_ns);
    __syncthreads();
    return is_free;
}

// All threads of a block: slice `step` of this rank's own elements and of all below it, at `to`.
template <class T>
__device__ bool gather_slice(Collective& collective, ReduceOp op, const Branch& branch, int step,
                             const Slice& share, std::size_t skip, T* to, std::uint64_t& now_ns) {
    const PeersView& view = collective.view;
    const auto* mine =
        reinterpret_cast<const T*>(view.data_of(view.rank, collective.record) + share.begin);
    const std::size_t count = share.bytes / sizeof(T);
    // The route of a broadcast serves the largest group first; here it comes last.
    for (int i = branch.topology.children - 1; i >= 0; i--) {
        const int child = branch.topology.child[i];
        const int ranks = branch.topology.parent < 0 && i == 0 ? view.world_size : 1;
        const auto combine_with = [&](const std::byte* input) {
            const std::byte* place =
                branch.is_leaf[i]
                    ? input + share.begin
                    : slot_of(view.result_of(child, place_of(collective, child)), step, skip);
            const auto* theirs = reinterpret_cast<const T*>(place);
            if (child < view.rank)
                combine_by_block(op, to, theirs, mine, count, ranks);
            else
                combine_by_block(op, to, mine, theirs, count, ranks);
        };
        if (!take(collective, child, step, share.bytes, now_ns, combine_with))
            return false;
        if (threadIdx.x == 0)
            acknowledge(collective, child, step, now_ns);
        mine = to;
    }
    return true;
}

template <class T>
__global__ void tree_reduce_kernel(Collective collective, ReduceOp op, Branch branch) {
    const PeersView& view = collective.view;
    const int parent = branch.topology.parent;
    std::byte* result = view.result_of(view.rank, collective.record);
    std::uint64_t now_ns = link_time(collective);
    bool is_well = threadIdx.x != 0 || begin_collective(collective);
    for (int step = 1; step <= branch.slices; step++) {
        const Slice slice = slice_of(branch.bytes, static_cast<std::size_t>(branch.slices),
                                     static_cast<std::size_t>(step - 1));
        const Slice share = block_share(slice);
        const std::size_t skip = share.begin - slice.begin;
        if (branch.topology.children > 0) {
            if (parent >= 0 && !wait_for_slot(collective, parent, step, now_ns))
                return;
            std::byte* to = parent >= 0 ? slot_of(result, step, skip) : result + share.begin;
            if (!gather_slice(collective, op, branch, step, share, skip, reinterpret_cast<T*>(to),
                              now_ns))
                return;
        } else if (parent < 0) {  // the only rank
            copy_by_block(result + share.begin,
                          view.data_of(view.rank, collective.record) + share.begin, share.bytes);
        }
        if (threadIdx.x == 0 && parent >= 0)
            is_well = is_well && post(collective, parent, step, now_ns);
    }
    if (threadIdx.x == 0 && is_well &&
        (parent < 0 || wait_until_acknowledged(collective, parent, branch.slices, now_ns)))
        end_block(collective);
}

}  // namespace

// ---- On the host

template <class T>
void tree_reduce(Peers& peers, const T* input, T* output, std::size_t count, ReduceOp op, int root,
                 Stream& stream, const std::string& name) {
    const std::string operation = "tree reduce " + name_of(op);
    require_reachable(peers, root, operation);
    const int rank = peers.view().rank, ranks = peers.view().world_size;
    Branch branch{tree_topology(rank, ranks, root)};
    for (int i = 0; i < branch.topology.children; i++)
        branch.is_leaf[i] = tree_topology(branch.topology.child[i], ranks, root).children == 0;

    CollectiveCall call{operation, count, type_name<T>(), name};
    call.root = root;
    call.input = input;
    // More elements than memory has bytes are refused as data that is not in the arena.
    call.input_bytes = branch.bytes = std::min(count, SIZE_MAX / sizeof(T)) * sizeof(T);
    call.output = rank == root ? static_cast<void*>(output) : peers.staging();
    call.output_bytes = rank == root ? branch.bytes : Peers::most_staged;
    const Collective collective = peers.next_collective(call, stream);
    branch.slices = static_cast<int>(slices_of(branch.bytes));
    launch_cooperative(stream, shape_of_transfer(peers, std::min(branch.bytes, slot_bytes)),
                       tree_reduce_kernel<T>, collective, op, branch);
    peers.enqueued(stream);
}

#define DDP_TREE_REDUCE(T)                                                               \
    template void tree_reduce(Peers&, const T*, T*, std::size_t, ReduceOp, int, Stream&, \
                              const std::string&);
DDP_TREE_REDUCE(float)
DDP_TREE_REDUCE(double)
DDP_TREE_REDUCE(int)
DDP_TREE_REDUCE(__half)
DDP_TREE_REDUCE(__nv_bfloat16)

std::string tree_order(int ranks) {
    return order_of(0, ranks);
}

double tree_reduce_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    const double steps = std::bit_width(static_cast<unsigned int>(ranks - 1));
    const auto slices = static_cast<double>(slices_of(bytes));
    return steps *
           (slices * message.alpha_s + static_cast<double>(bytes) * message.beta_s_per_byte);
}

}  // namespace ddp
