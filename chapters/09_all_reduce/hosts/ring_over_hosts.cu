#include "09_all_reduce/hosts/ring_over_hosts.hpp"

#include <algorithm>

#include "06_messages/support/copy.cuh"
#include "07_broadcast/collective.cuh"
#include "07_broadcast/transfer.cuh"
#include "09_all_reduce/all_reduce.hpp"
#include "09_all_reduce/hosts/fifo.cuh"
#include "09_all_reduce/pack.cuh"

namespace ddp {
namespace {

__device__ bool is_same_call(const OperationRecord& a, const OperationRecord& b) {
    return a.count == b.count && a.peer == b.peer && is_same_text(a.operation, b.operation) &&
           is_same_text(a.type, b.type) && is_same_text(a.name, b.name);
}

// Slices of a round: while some are on their way, as many are worked on.
constexpr std::size_t slices_of_round = fifo_slots / 2;

// ---- On the device

__device__ std::size_t smaller(std::size_t a, std::size_t b) {
    return a < b ? a : b;
}

__device__ Chunk planned_chunk(const RingPlan& plan, int c) {
    if (plan.root >= 0)
        return {0, c == plan.root ? plan.chunk : 0};
    const std::size_t begin = smaller(static_cast<std::size_t>(c) * plan.chunk, plan.total);
    return {begin, smaller(plan.chunk, plan.total - begin)};
}

// One rank's walk through the steps of an operation. All threads of its one block take it together;
// thread 0 has the FIFOs.
template <class T>
class RingWalk {
  public:
    __device__ RingWalk(const Collective& collective, const RingPlan& plan, ReduceOp op,
                        Fifo* from_left, Fifo* to_right)
        : collective_(collective),
          plan_(plan),
          op_(op),
          rank_(collective.view.rank),
          ranks_(collective.view.world_size) {
        const PeersView& view = collective.view;
        input_ = reinterpret_cast<const T*>(view.data_of(rank_, collective.record));
        output_ = reinterpret_cast<T*>(view.result_of(rank_, collective.record));
        if (threadIdx.x == 0) {
            left_ = end_to_empty(from_left, (rank_ + ranks_ - 1) % ranks_);
            right_ = end_to_fill(to_right, (rank_ + 1) % ranks_);
        }
    }

    // False if the run fails on the way. The last step of a round and the first of the next one go
    // hand in hand: there is always something to send.
    __device__ bool go() {
        bool goes_on = begin();
        for (std::size_t i = 0; i < slices_of_round; i++)
            goes_on = goes_on && pass(plan_.first, i);
        for (std::size_t round = 0; round < plan_.rounds; round++) {
            const std::size_t begin = round * slices_of_round, end = begin + slices_of_round;
            for (int step = plan_.first + 1; step < plan_.last; step++)
                for (std::size_t i = begin; i < end; i++)
                    goes_on = goes_on && pass(step, i);
            for (std::size_t i = begin; i < end; i++)
                goes_on = goes_on && pass(plan_.first, i + slices_of_round) && pass(plan_.last, i);
        }
        return goes_on;
    }

  private:
    // Tells the right neighbour what is begun, and hears from the left one.
    __device__ bool begin() {
        __shared__ bool has_begun;
        if (threadIdx.x == 0) {
            tell_wanted(left_, 1 + slices_to_come());
            has_begun = begin_operation(collective_.view, collective_.record) &&
                        say_record(collective_, right_) &&
                        hear_record(collective_, left_, [this](const OperationRecord& theirs) {
                            return is_same_call(collective_.record, theirs);
                        });
        }
        __syncthreads();
        return has_begun;
    }

    __device__ std::uint64_t slices_to_come() const {
        std::uint64_t slices = 0;
        for (int step = plan_.first + 1; step <= plan_.last; step++)
            slices += (planned_chunk(plan_, chunk_in(step)).size + plan_.slice - 1) / plan_.slice;
        return slices;
    }

    __device__ int chunk_in(int step) const { return (rank_ + 2 * ranks_ - 1 - step) % ranks_; }

    // Slice `i` of the chunk of a step: receives it, adds to it, keeps it, sends it on, whatever
    // the step asks for. Nothing if there is no such slice.
    __device__ bool pass(int step, std::size_t i) {
        const int c = chunk_in(step);
        const Chunk chunk = planned_chunk(plan_, c);
        const std::size_t begin = smaller(i * plan_.slice, chunk.size);
        const std::size_t size = smaller(plan_.slice, chunk.size - begin);
        if (size == 0)
            return true;
        const int complete = ranks_ - 1;
        const bool receives = step > plan_.first, sends = step < plan_.last;
        if (!find_slots(receives, sends))
            return false;
        const T* own = input_ + (plan_.input_is_whole ? chunk.begin : 0) + begin;
        T* result = output_ + (plan_.output_is_whole ? chunk.begin : 0) + begin;
        if (receives && step <= complete)
            add(own, step == complete ? result : nullptr, sends, size);
        else
            copy(receives ? theirs() : own, step >= complete ? result : nullptr, sends, size);
        give_slots_back(receives, sends, size);
        return true;
    }

    // All threads. `result` may be null.
    __device__ void add(const T* own, T* result, bool sends, std::size_t size) {
        add_array(op_, result != nullptr ? result : slot(), theirs(), own, column_range(size),
                  result != nullptr ? ranks_ : 0);
        if (result == nullptr || !sends)
            return;
        __syncthreads();
        copy(result, nullptr, sends, size);
    }
    __device__ void copy(const T* from, T* result, bool sends, std::size_t size) {
        const auto copy_to = [&](T* to) {
            copy_by_block(reinterpret_cast<std::byte*>(to),
                          reinterpret_cast<const std::byte*>(from), size * sizeof(T));
        };
        if (result != nullptr && result != from)
            copy_to(result);
        if (sends)
            copy_to(slot());
    }

    // All threads. Until the left neighbour's slice is here and there is room for ours.
    __device__ bool find_slots(bool receives, bool sends) {
        __shared__ bool are_found;
        if (threadIdx.x == 0) {
            Slots& slots = shared_slots();
            slots.theirs = receives ? slot_to_empty(collective_, left_) : nullptr;
            slots.ours = sends ? slot_to_fill(collective_, right_) : nullptr;
            are_found = (!receives || slots.theirs != nullptr) && (!sends || slots.ours != nullptr);
        }
        __syncthreads();
        return are_found;
    }
    __device__ void give_slots_back(bool receives, bool sends, std::size_t size) {
        __syncthreads();
        if (threadIdx.x == 0 && receives)
            tell_emptied(left_);
        if (threadIdx.x == 0 && sends)
            tell_filled(right_, size * sizeof(T));
    }

    struct Slots {
        std::byte *theirs, *ours;
    };
    __device__ static Slots& shared_slots() {
        __shared__ Slots slots;
        return slots;
    }
    __device__ static const T* theirs() {
        return reinterpret_cast<const T*>(shared_slots().theirs);
    }
    __device__ static T* slot() { return reinterpret_cast<T*>(shared_slots().ours); }

    const Collective& collective_;
    const RingPlan& plan_;
    const ReduceOp op_;
    const int rank_, ranks_;
    const T* input_;
    T* output_;
    FifoEnd left_, right_;
};

// The compiler would give a thread more registers than a block of so many has.
constexpr unsigned int most_threads = 512;

template <class T>
__global__ void __launch_bounds__(most_threads)
    ring_over_hosts(const __grid_constant__ Collective collective,
                    const __grid_constant__ RingPlan plan, ReduceOp op, Fifo* from_left,
                    Fifo* to_right) {
    RingWalk<T> walk(collective, plan, op, from_left, to_right);
    if (walk.go() && threadIdx.x == 0)
        end_operation(collective.view);
}

// ---- On the host

constexpr int channel_of_ring = 1;

// `sums` and `copies`: whether the data goes round the first time, and the second time.
RingPlan plan_of(int ranks, bool sums, bool copies, std::size_t chunk, std::size_t total) {
    RingPlan plan;
    plan.first = sums ? 0 : ranks - 1;
    plan.last = copies ? 2 * ranks - 2 : ranks - 1;
    plan.chunk = chunk;
    plan.total = total;
    return plan;
}

// Cuts the longest chunk into rounds of slices that are as long as a slot takes, but of one length.
// Very short ones are not worth their way.
void cut_into_slices(RingPlan& plan, std::size_t element_bytes) {
    constexpr std::size_t unit = 128, shortest = 8 << 10;
    const auto parts = [](std::size_t whole, std::size_t part) {
        return (whole + part - 1) / part;
    };
    const std::size_t bytes = plan.chunk * element_bytes;
    plan.rounds = std::max<std::size_t>(parts(bytes, slices_of_round * slot_bytes), 1);
    const std::size_t slice = parts(bytes, plan.rounds * slices_of_round);
    plan.slice = std::max(parts(slice, unit) * unit, shortest) / element_bytes;
}

}  // namespace

RingOverHosts::RingOverHosts(Peers& peers, NetworkProxy& proxy) : peers_(peers) {
    const PeersView& view = peers.view();
    const int left = (view.rank + view.world_size - 1) % view.world_size;
    const int right = (view.rank + 1) % view.world_size;
    if (view.control[left] == nullptr) {
        from_left_ = proxy.channel_from(left, channel_of_ring);
    } else {
        in_arena_ = peers.allocate<Fifo>(1);
        from_left_ = in_arena_.data();
        const FifoHead fresh;
        copy_to_device(static_cast<FifoHead*>(from_left_), &fresh, sizeof fresh);
    }
    Fifo* of_right = find_fifo_of(right);
    to_right_ = of_right != nullptr ? of_right : proxy.channel_to(right, channel_of_ring);
}

// Returns the right neighbour's FIFO in its arena; null if that is on another host. All ranks call
// this together.
Fifo* RingOverHosts::find_fifo_of(int right) {
    const PeersView& view = peers_.view();
    const auto arena_of = [&](int r) { return reinterpret_cast<std::byte*>(view.control[r]); };
    const auto* own = reinterpret_cast<const std::byte*>(in_arena_.data());
    const std::ptrdiff_t offset = own == nullptr ? 0 : own - arena_of(view.rank);
    const std::vector<std::ptrdiff_t> offsets = peers_.rank().all_gather(offset);
    if (view.control[right] == nullptr)
        return nullptr;
    return reinterpret_cast<Fifo*>(arena_of(right) + offsets[static_cast<std::size_t>(right)]);
}

template <class T>
void RingOverHosts::launch(const Call& call, RingPlan plan, Stream& stream) {
    cut_into_slices(plan, sizeof(T));
    const Collective collective = Collectives::over(peers_).next(call, stream);
    launch_cooperative(stream, kernels_run_on_cpu ? shape_on_cpu(1) : LaunchShape(1, most_threads),
                       ring_over_hosts<T>, collective, plan, call.op.value_or(ReduceOp::sum),
                       from_left_, to_right_);
    peers_.enqueued(stream);
}

void RingOverHosts::launch_sum(const Call& call, const RingPlan& plan, Stream& stream) {
    with_type(call.type, [&]<class T>() { launch<T>(call, plan, stream); });
}

void RingOverHosts::all_reduce(const Call& call, Stream& stream) {
    const int ranks = peers_.view().world_size;
    const Chunk longest =
        chunk_of(call.count, static_cast<std::size_t>(ranks), 0, bytes_of(call.type));
    RingPlan plan = plan_of(ranks, true, true, longest.size, call.count);
    plan.input_is_whole = plan.output_is_whole = true;
    launch_sum(call, plan, stream);
}

void RingOverHosts::reduce_scatter(const Call& call, Stream& stream) {
    const int ranks = peers_.view().world_size;
    RingPlan plan =
        plan_of(ranks, true, false, call.count, static_cast<std::size_t>(ranks) * call.count);
    plan.input_is_whole = true;
    launch_sum(call, plan, stream);
}

void RingOverHosts::reduce(const Call& call, Stream& stream) {
    RingPlan plan = plan_of(peers_.view().world_size, true, false, call.count, call.count);
    plan.root = call.peer;
    launch_sum(call, plan, stream);
}

void RingOverHosts::all_gather(const Call& call, Stream& stream) {
    const int ranks = peers_.view().world_size;
    const std::size_t bytes = call.bytes();
    RingPlan plan = plan_of(ranks, false, true, bytes, static_cast<std::size_t>(ranks) * bytes);
    plan.output_is_whole = true;
    launch<unsigned char>(call, plan, stream);
}

void RingOverHosts::broadcast(const Call& call, Stream& stream) {
    RingPlan plan = plan_of(peers_.view().world_size, false, true, call.bytes(), call.bytes());
    plan.root = call.peer;
    launch<unsigned char>(call, plan, stream);
}

}  // namespace ddp
