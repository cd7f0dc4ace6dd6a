#pragma once
// The schedule of a rank in a ring of ranks on several nodes, whose neighbours are reached by
// FIFOs. For three ranks, the chunk that each of them sends (step 0) or receives:
//
//                                        position 0   position 1   position 2
//     phase 1   step 0  send_own              2            0            1
//     phase 2   step 1  add_and_send          1            2            0     partial sums grow
//               step 2  complete_and_send     0            1            2     p completes chunk p
//               step 3  copy_and_send         2            0            1     sums go round
//     phase 3   step 4  copy                  1            2            0     every rank has all
//
// A reduce-scatter ends with step 2, an all-gather begins there. A chunk is cut into slices, of
// which four are a round. The rank's own slices of the first round leave (phase 1). A round goes
// through the steps (phase 2). At its end, one of the rank's slices of the next round leaves
// whenever a sum of this one arrives (phase 3), so that something is always on its way.
//
// Operations say what all threads of the block do with a slice. The left neighbour
// has filled the slot `theirs`, and the right one empties `slot`; the last step has none. `own` is
// where this rank's elements are, which an operation may have to make in the slot first:
//
//     own(slice, slot)                                own elements
//     send_own(slice, own, slot)                      own -> slot
//     add_and_send(slice, own, theirs, slot)          theirs + own -> slot
//     complete_and_send(slice, own, theirs, slot)     theirs + own (complete) -> result and slot
//     copy_and_send(slice, theirs, slot)              theirs -> result and slot
#include "07_broadcast/collective.cuh"
#include "09_all_reduce/all_reduce.hpp"
#include "10_nodes/network/fifo.cuh"
#include "10_nodes/ring_plan.hpp"

namespace ddp {

__device__ inline std::size_t smaller_of(std::size_t a, std::size_t b) {
    return a < b ? a : b;
}

__device__ inline Chunk planned_chunk(const RingPlan& plan, int c) {
    if (plan.root >= 0)
        return {0, c == plan.root ? plan.chunk : 0};
    const int place = plan.order != nullptr ? plan.order[c] : c * plan.stride + plan.offset;
    const std::size_t begin = smaller_of(static_cast<std::size_t>(place) * plan.chunk, plan.total);
    return {begin, smaller_of(plan.chunk, plan.total - begin)};
}

// Some elements of a chunk.
struct RingSlice {
    Chunk chunk;
    std::size_t begin, size;  // within it
};

// All threads of the one block run the schedule together; thread 0 has the FIFOs.
template <class T, class Operations>
class RingSchedule {
  public:
    __device__ RingSchedule(const Collective& collective, const RingPlan& plan,
                            Operations& operations, const FifoSide& from_left,
                            const FifoSide& to_right)
        : collective_(collective),
          plan_(plan),
          operations_(operations),
          left_(threadIdx.x == 0 ? end_to_empty(from_left) : FifoEnd{from_left}),
          right_(threadIdx.x == 0 ? end_to_fill(to_right) : FifoEnd{to_right}) {}

    // Tells the right neighbour what is begun, and waits for the ranks of this node that the
    // operations read from.
    __device__ bool begin() {
        __shared__ bool has_begun;
        if (threadIdx.x == 0) {
            grant(left_, 1 + slices_to_come());
            has_begun = begin_collective(collective_) && send_header(collective_, right_);
            for (int r = plan_.local_begin; r < plan_.local_end; r++)
                has_begun = has_begun && handshake(collective_, r);
        }
        __syncthreads();
        return has_begun;
    }

    // Passes all slices, in order. False if the run fails on the way. (`pass` is called at one
    // place only: it is long, and the compiler has to put it there.)
    __device__ bool run() {
        const std::size_t slices =
            slices_of_round + plan_.rounds * (slices_between() + slices_at_end);
        for (std::size_t t = 0; t < slices; t++) {
            const bool header_is_due = t == slices_of_round;
            if ((header_is_due && !receive_first_header()) || !pass(scheduled_at(t)))
                return false;
        }
        return true;
    }

  private:
    // A slice at a step.
    struct ScheduledSlice {
        int step;
        std::size_t slice;
    };

    // Returns the slice that is passed at `time`.
    __device__ ScheduledSlice scheduled_at(std::size_t time) const {
        // Phase 1: this rank's slices of the first round leave.
        if (time < slices_of_round)
            return {plan_.first, time};
        const std::size_t since = time - slices_of_round, all = slices_between() + slices_at_end;
        const std::size_t round = since / all * slices_of_round, t = since % all;
        // Phase 2: the round goes through the steps between its first and its last.
        if (t < slices_between())
            return {plan_.first + 1 + static_cast<int>(t / slices_of_round),
                    round + t % slices_of_round};
        // Phase 3: alternately, a slice of the next round leaves and a sum of this one arrives.
        const std::size_t slice = round + (t - slices_between()) / 2;
        return (t - slices_between()) % 2 == 0
                   ? ScheduledSlice{plan_.first, slice + slices_of_round}
                   : ScheduledSlice{plan_.last, slice};
    }
    // The slices that a round passes in phase 2, and in phase 3. (A ring of one rank has one step.)
    __device__ std::size_t slices_between() const {
        const int steps = plan_.last - plan_.first - 1;
        return steps > 0 ? steps * slices_of_round : 0;
    }
    static constexpr std::size_t slices_at_end = 2 * slices_of_round;

    // Receives what the left neighbour has begun. This rank's first slices are on their way by now.
    __device__ bool receive_first_header() {
        __shared__ bool is_same;
        if (threadIdx.x == 0)
            is_same = receive_header(collective_, left_, [this](const OperationRecord& theirs) {
                return theirs.fingerprint == collective_.record.fingerprint;
            });
        __syncthreads();
        return is_same;
    }

    __device__ std::uint64_t slices_to_come() const {
        std::uint64_t slices = 0;
        for (int step = plan_.first + 1; step <= plan_.last; step++)
            slices += (planned_chunk(plan_, chunk_in(step)).size + plan_.slice - 1) / plan_.slice;
        return slices;
    }

    __device__ int chunk_in(int step) const {
        return (plan_.position + 2 * plan_.ranks - 1 - step) % plan_.ranks;
    }

    // One slice of the chunk of a step: finds the slots that it comes and leaves in, and lets the
    // operation do its part. Nothing if there is no such slice.
    __device__ bool pass(ScheduledSlice now) {
        const int step = now.step;
        const Chunk chunk = planned_chunk(plan_, chunk_in(step));
        const std::size_t begin = smaller_of(now.slice * plan_.slice, chunk.size);
        const RingSlice slice{chunk, begin, smaller_of(plan_.slice, chunk.size - begin)};
        if (slice.size == 0)
            return true;
        const bool receives = step > plan_.first, sends = step < plan_.last;
        if (!find_slots(receives, sends))
            return false;
        const T* theirs = reinterpret_cast<const T*>(shared_slots().theirs);
        T* slot = reinterpret_cast<T*>(shared_slots().ours);
        if (step > plan_.complete()) {
            operations_.copy_and_send(slice, theirs, slot);
        } else {
            const T* own = operations_.own(slice, slot);
            if (!receives)
                operations_.send_own(slice, own, slot);
            else if (step < plan_.complete())
                operations_.add_and_send(slice, own, theirs, slot);
            else
                operations_.complete_and_send(slice, own, theirs, slot);
        }
        give_slots_back(receives, sends, slice.size);
        return true;
    }

    // All threads. Until the left neighbour's slice is here and there is room for ours. A slot that
    // the step does not need is null.
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
            return_slot(left_);
        if (threadIdx.x == 0 && sends)
            publish(right_, size * sizeof(T));
    }

    struct Slots {
        std::byte *theirs, *ours;
    };
    __device__ static Slots& shared_slots() {
        __shared__ Slots slots;
        return slots;
    }

    const Collective& collective_;
    const RingPlan& plan_;
    Operations& operations_;
    FifoEnd left_, right_;
};

// A bound for the compiler: it would give a thread more registers than so many threads can have.
inline constexpr unsigned int max_ring_threads = 512;

// The launch shape of a ring: one block.
inline LaunchShape shape_of_one_block() {
    return kernels_run_on_cpu ? shape_on_cpu(1) : LaunchShape(1, max_ring_threads);
}

}  // namespace ddp
