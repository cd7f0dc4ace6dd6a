// The message from a rank to each node of its rail, and the order in which what comes is added up,
// for three nodes:
//
//     message     the record of the operation, and this node's sums of the rail's chunks 0, 1, 2
//     chunk 0     node 1 + node 2 + node 0
//     chunk 1     node 2 + node 0 + node 1        chunk c begins with node c + 1 and goes round
//     chunk 2     node 0 + node 1 + node 2
#include "10_nodes/communicator/one_shot_over_nodes.hpp"

#include "10_nodes/local_arrays.cuh"

namespace ddp {
namespace {

using Rail = OneShotOverNodes::Rail;

// A message has its data behind the record, aligned as a Pack takes it.
constexpr std::size_t data_offset = (sizeof(OperationRecord) + 127) / 128 * 128;

template <class T>
__device__ T* data_in(std::byte* slot) {
    return reinterpret_cast<T*>(slot + data_offset);
}

// The work of one rank, by all threads of the one block.
template <class T>
class OneShot {
  public:
    // The memory that the threads share. parts[h] is the rail's part of node h; so is parts[h +
    // nodes].
    struct Shared {
        LocalArrays<T> local;
        std::byte* to[OneShotOverNodes::max_nodes];
        const T* parts[2 * OneShotOverNodes::max_nodes];
        bool goes_on;
    };

    __device__ OneShot(const Collective& collective, const RingPlan& plan, ReduceOp op,
                       const Rail& rail, Shared& shared)
        : collective_(collective), plan_(plan), op_(op), rail_(rail), shared_(shared) {}

    __device__ bool go() {
        return all_agree([this] { return begin(); }) && send() &&
               all_agree([this] { return receive(); }) && add_up();
    }

  private:
    // The node that comes `distance` after this one, round the ring.
    __device__ int node_after(int distance) const {
        return (plan_.position + distance) % plan_.ranks;
    }

    // Thread 0: its ends of the FIFOs. They stay where they are until the one message is filled or
    // emptied. The right neighbour of a node knows best that it has not come; and where ranks of a
    // node wait for each other first, they do.
    __device__ FifoEnd end_to(int node) const { return end_to_fill(rail_.to[node]); }
    __device__ FifoEnd end_from(int node) const {
        FifoEnd end = end_to_empty(rail_.from[node]);
        end.others_know_better =
            node != node_after(plan_.ranks - 1) || plan_.local_end - plan_.local_begin > 1;
        return end;
    }

    // All threads get what thread 0 finds.
    template <class Find>
    __device__ bool all_agree(Find find) {
        if (threadIdx.x == 0)
            shared_.goes_on = find();
        __syncthreads();
        return shared_.goes_on;
    }

    // Thread 0: lets the messages come, meets the ranks of this node, and finds room for what
    // leaves.
    __device__ bool begin() {
        for (int j = 1; j < plan_.ranks; j++)
            grant(end_from(node_after(j)), 1);
        if (!begin_collective(collective_))
            return false;
        for (int r = plan_.local_begin; r < plan_.local_end; r++)
            if (!handshake(collective_, r))
                return false;
        shared_.local.find(collective_, plan_);
        for (int j = 1; j < plan_.ranks; j++) {
            const int h = node_after(j);
            shared_.to[h] = slot_to_fill(collective_, end_to(h));
            if (shared_.to[h] == nullptr)
                return false;
            publish_record(*reinterpret_cast<OperationRecord*>(shared_.to[h]), collective_.record);
        }
        return true;
    }

    // All threads: sums the arrays of this node into the message for the next one, which leaves at
    // once, and copies it into the others.
    __device__ bool send() {
        const int next = node_after(1);
        T* own = data_in<T>(shared_.to[next]);
        for (int c = 0; c < plan_.ranks; c++) {
            shared_.local.sum(op_, slice_of(c), own + place_of_chunk(c));
            __syncthreads();
        }
        fill(next);
        for (int j = 2; j < plan_.ranks; j++) {
            const int h = node_after(j);
            LocalArrays<T>::copy_slice(data_in<T>(shared_.to[h]), own, part_size());
            __syncthreads();
            fill(h);
        }
        if (threadIdx.x == 0)
            receive_part(plan_.position, own);  // a slot that is on its way still has its bytes
        return true;
    }
    __device__ void fill(int node) {
        if (threadIdx.x != 0)
            return;
        FifoEnd end = end_to(node);
        publish(end, data_offset + part_size() * sizeof(T));
    }

    // Thread 0: waits for all messages, that of the left neighbour first.
    __device__ bool receive() {
        for (int j = plan_.ranks - 1; j > 0; j--) {
            const int h = node_after(j);
            FifoEnd from = end_from(h);
            std::byte* slot = slot_to_empty(collective_, from);
            if (slot == nullptr || !is_record_right(from, slot))
                return false;
            receive_part(h, data_in<T>(slot));
        }
        return true;
    }
    __device__ bool is_record_right(FifoEnd& from, std::byte* slot) {
        return check_record(collective_, from, slot, [this](const OperationRecord& theirs) {
            return theirs.fingerprint == collective_.record.fingerprint;
        });
    }
    __device__ void receive_part(int node, const T* part) {
        shared_.parts[node] = shared_.parts[node + plan_.ranks] = part;
    }

    // All threads: adds up the nodes, and gives the slots back.
    __device__ bool add_up() {
        for (int c = 0; c < plan_.ranks; c++)
            with_op(op_, [&]<ReduceOp op>() { add_nodes<op>(c); });
        __syncthreads();
        if (threadIdx.x != 0)
            return true;
        for (int j = 1; j < plan_.ranks; j++) {
            FifoEnd from = end_from(node_after(j));
            return_slot(from);
        }
        return leave_node(collective_, plan_);
    }
    template <ReduceOp op>
    __device__ void add_nodes(int c) {
        const RingSlice slice = slice_of(c);
        for (std::size_t i : column_range(slice.size)) {
            const std::size_t place = place_of_chunk(c) + i;
            T sum = shared_.parts[c + 1][place];
            for (int j = 2; j <= plan_.ranks; j++)
                add_to<op>(sum, shared_.parts[c + j][place]);
            finish_sum<op>(sum, plan_.ranks * shared_.local.ranks);
            for (int j = 0; j < shared_.local.ranks; j++)
                shared_.local.outputs[j][slice.chunk.begin + i] = sum;
        }
    }

    // The rail's chunk c is one slice. In a message, the chunks follow each other.
    __device__ RingSlice slice_of(int c) const {
        const Chunk chunk = planned_chunk(plan_, c);
        return {chunk, 0, chunk.size};
    }
    __device__ std::size_t place_of_chunk(int c) const {
        return static_cast<std::size_t>(c) * plan_.chunk;
    }
    __device__ std::size_t part_size() const { return place_of_chunk(plan_.ranks); }

    const Collective& collective_;
    const RingPlan& plan_;
    const ReduceOp op_;
    const Rail& rail_;
    Shared& shared_;
};

template <class T>
__global__ void __launch_bounds__(max_ring_threads, 1)
    one_shot_over_nodes(const __grid_constant__ Collective collective,
                        const __grid_constant__ RingPlan plan, ReduceOp op,
                        const __grid_constant__ Rail rail) {
    __shared__ typename OneShot<T>::Shared shared;
    OneShot<T> one_shot(collective, plan, op, rail, shared);
    if (one_shot.go() && threadIdx.x == 0)
        end_operation(collective.view);
}

// ---- On the host

constexpr int channel_of_one_shot = 4;

}  // namespace

bool OneShotOverNodes::suits(const Placement& placement, int levels) {
    return placement.nodes() > 1 && placement.nodes() <= max_nodes && placement.is_even() &&
           (placement.sizes[0] == 1 || uses_two_levels(placement, levels));
}

OneShotOverNodes::OneShotOverNodes(Peers& peers, NetworkProxy& proxy, const Placement& placement,
                                   const RingNeighbours& neighbours)
    : peers_(peers), placement_(placement) {
    const int nodes = placement.nodes();
    for (int distance = 1; distance < nodes; distance++) {
        const int rank = placement.on_rail(distance);
        const int node = (placement.node() + distance) % nodes;
        rail_.to[node] = distance == 1
                             ? neighbours.right()
                             : FifoSide{proxy.channel_to(rank, channel_of_one_shot), rank};
        rail_.from[node] = distance == nodes - 1
                               ? neighbours.left()
                               : FifoSide{proxy.channel_from(rank, channel_of_one_shot), rank};
    }
}

void OneShotOverNodes::all_reduce(const Call& call, Stream& stream) {
    const RingPlan plan = plan_of_rail(peers_, placement_, call);
    const Collective collective = Collectives::over(peers_).next(call, stream);
    with_type(call.type, [&]<class T>() {
        launch_cooperative(stream, shape_of_one_block(), one_shot_over_nodes<T>, collective, plan,
                           *call.op, rail_);
    });
    peers_.enqueued(stream);
}

}  // namespace ddp
