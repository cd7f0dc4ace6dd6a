// The message from a rank to each host of its rail, and the order in which what comes is added up,
// for three hosts:
//
//     message     the record of the operation, and this host's sums of the rail's chunks 0, 1, 2
//     chunk 0     host 1 + host 2 + host 0
//     chunk 1     host 2 + host 0 + host 1        chunk c begins with host c + 1 and goes round
//     chunk 2     host 0 + host 1 + host 2
#include "10_nodes/communicator/one_shot_over_hosts.hpp"

#include "10_nodes/near_arrays.cuh"

namespace ddp {
namespace {

using Rail = OneShotOverHosts::Rail;

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
    // The memory that the threads share. parts[h] is the rail's part of host h; so is parts[h +
    // hosts].
    struct Shared {
        NearArrays<T> near;
        std::byte* to[OneShotOverHosts::most_hosts];
        const T* parts[2 * OneShotOverHosts::most_hosts];
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
    // The host that comes `distance` after this one, round the ring.
    __device__ int host_after(int distance) const {
        return (plan_.position + distance) % plan_.ranks;
    }

    // Thread 0: its ends of the FIFOs. They stay where they are until the one message is filled or
    // emptied. The right neighbour of a host knows best that it has not come; and where ranks of a
    // host wait for each other first, they do.
    __device__ FifoEnd end_to(int host) const { return end_to_fill(rail_.to[host]); }
    __device__ FifoEnd end_from(int host) const {
        FifoEnd end = end_to_empty(rail_.from[host]);
        end.others_know_better =
            host != host_after(plan_.ranks - 1) || plan_.near_end - plan_.near_begin > 1;
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

    // Thread 0: lets the messages come, meets the ranks of this host, and finds room for what
    // leaves.
    __device__ bool begin() {
        for (int j = 1; j < plan_.ranks; j++)
            tell_wanted(end_from(host_after(j)), 1);
        if (!begin_collective(collective_))
            return false;
        for (int r = plan_.near_begin; r < plan_.near_end; r++)
            if (!handshake(collective_, r))
                return false;
        shared_.near.find(collective_, plan_);
        for (int j = 1; j < plan_.ranks; j++) {
            const int h = host_after(j);
            shared_.to[h] = slot_to_fill(collective_, end_to(h));
            if (shared_.to[h] == nullptr)
                return false;
            publish_record(*reinterpret_cast<OperationRecord*>(shared_.to[h]), collective_.record);
        }
        return true;
    }

    // All threads: sums the arrays of this host into the message for the next one, which leaves at
    // once, and copies it into the others.
    __device__ bool send() {
        const int next = host_after(1);
        T* own = data_in<T>(shared_.to[next]);
        for (int c = 0; c < plan_.ranks; c++) {
            shared_.near.sum(op_, slice_of(c), own + place_of_chunk(c));
            __syncthreads();
        }
        fill(next);
        for (int j = 2; j < plan_.ranks; j++) {
            const int h = host_after(j);
            NearArrays<T>::copy_slice(data_in<T>(shared_.to[h]), own, part_size());
            __syncthreads();
            fill(h);
        }
        if (threadIdx.x == 0)
            hear_part(plan_.position, own);  // a slot that is on its way still has its bytes
        return true;
    }
    __device__ void fill(int host) {
        if (threadIdx.x != 0)
            return;
        FifoEnd end = end_to(host);
        tell_filled(end, data_offset + part_size() * sizeof(T));
    }

    // Thread 0: waits for all messages, that of the left neighbour first.
    __device__ bool receive() {
        for (int j = plan_.ranks - 1; j > 0; j--) {
            const int h = host_after(j);
            FifoEnd from = end_from(h);
            std::byte* slot = slot_to_empty(collective_, from);
            if (slot == nullptr || !is_record_right(from, slot))
                return false;
            hear_part(h, data_in<T>(slot));
        }
        return true;
    }
    __device__ bool is_record_right(FifoEnd& from, std::byte* slot) {
        return check_record(collective_, from, slot, [this](const OperationRecord& theirs) {
            return is_same_call(collective_.record, theirs);
        });
    }
    __device__ void hear_part(int host, const T* part) {
        shared_.parts[host] = shared_.parts[host + plan_.ranks] = part;
    }

    // All threads: adds up the hosts, and gives the slots back.
    __device__ bool add_up() {
        for (int c = 0; c < plan_.ranks; c++)
            with_op(op_, [&]<ReduceOp op>() { add_hosts<op>(c); });
        __syncthreads();
        if (threadIdx.x != 0)
            return true;
        for (int j = 1; j < plan_.ranks; j++) {
            FifoEnd from = end_from(host_after(j));
            tell_emptied(from);
        }
        return leave_host(collective_, plan_);
    }
    template <ReduceOp op>
    __device__ void add_hosts(int c) {
        const RingSlice slice = slice_of(c);
        for (std::size_t i : column_range(slice.size)) {
            const std::size_t place = place_of_chunk(c) + i;
            T sum = shared_.parts[c + 1][place];
            for (int j = 2; j <= plan_.ranks; j++)
                add_to<op>(sum, shared_.parts[c + j][place]);
            finish_sum<op>(sum, plan_.ranks * shared_.near.ranks);
            for (int j = 0; j < shared_.near.ranks; j++)
                shared_.near.outputs[j][slice.chunk.begin + i] = sum;
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
__global__ void __launch_bounds__(most_ring_threads, 1)
    one_shot_over_hosts(const __grid_constant__ Collective collective,
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

bool OneShotOverHosts::suits(const Placement& placement, int levels) {
    return placement.hosts() > 1 && placement.hosts() <= most_hosts && placement.is_even() &&
           (placement.sizes[0] == 1 || goes_on_two_levels(placement, levels));
}

OneShotOverHosts::OneShotOverHosts(Peers& peers, NetworkProxy& proxy, const Placement& placement,
                                   const RingNeighbours& neighbours)
    : peers_(peers), placement_(placement) {
    const int hosts = placement.hosts();
    for (int distance = 1; distance < hosts; distance++) {
        const int rank = placement.on_rail(distance);
        const int host = (placement.host() + distance) % hosts;
        rail_.to[host] = distance == 1
                             ? neighbours.right()
                             : FifoSide{proxy.channel_to(rank, channel_of_one_shot), rank};
        rail_.from[host] = distance == hosts - 1
                               ? neighbours.left()
                               : FifoSide{proxy.channel_from(rank, channel_of_one_shot), rank};
    }
}

void OneShotOverHosts::all_reduce(const Call& call, Stream& stream) {
    const RingPlan plan = plan_of_rail(peers_, placement_, call);
    const Collective collective = Collectives::over(peers_).next(call, stream);
    with_type(call.type, [&]<class T>() {
        launch_cooperative(stream, shape_of_walk(), one_shot_over_hosts<T>, collective, plan,
                           *call.op, rail_);
    });
    peers_.enqueued(stream);
}

}  // namespace ddp
