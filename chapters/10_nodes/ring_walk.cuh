#pragma once
// One rank's walk through the steps of a ring whose neighbours are reached by FIFOs: which slice of
// which chunk comes when, and the slots that it comes and leaves in. What is done with a slice is
// the Work's, by all threads of the block:
//
//     work.pass(slice, theirs, slot, has_own, is_complete)
//
// `theirs` has come and `slot` leaves; either can be null. has_own: this rank's own elements are
// part of what leaves. is_complete: it belongs in the result, too.
//
// A ring of three ranks, all-reduce; the chunk that each rank sends or receives:
//
//                    position 0   position 1   position 2
//     step 0  copy       2            0            1        its own elements leave
//     step 1  add        1            2            0
//     step 2  add        0            1            2        complete
//     step 3  copy       2            0            1
//     step 4  copy       1            2            0        every rank has all sums
#include "07_broadcast/collective.cuh"
#include "09_all_reduce/all_reduce.hpp"
#include "10_nodes/network/fifo.cuh"
#include "10_nodes/ring_plan.hpp"

namespace ddp {

__device__ inline std::size_t smaller_of(std::size_t a, std::size_t b) {
    return a < b ? a : b;
}

__device__ inline bool is_same_call(const OperationRecord& a, const OperationRecord& b) {
    return a.count == b.count && a.peer == b.peer && is_same_text(a.operation, b.operation) &&
           is_same_text(a.type, b.type) && is_same_text(a.name, b.name);
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

// All threads of the one block take the walk together; thread 0 has the FIFOs.
template <class T, class Work>
class RingWalk {
  public:
    __device__ RingWalk(const Collective& collective, const RingPlan& plan, Work& work,
                        const FifoSide& from_left, const FifoSide& to_right)
        : collective_(collective),
          plan_(plan),
          work_(work),
          left_(threadIdx.x == 0 ? end_to_empty(from_left) : FifoEnd{from_left}),
          right_(threadIdx.x == 0 ? end_to_fill(to_right) : FifoEnd{to_right}) {}

    // Tells the right neighbour what is begun, and waits for the ranks of this host that the work
    // reads from.
    __device__ bool begin() {
        __shared__ bool has_begun;
        if (threadIdx.x == 0) {
            tell_wanted(left_, 1 + slices_to_come());
            has_begun = begin_collective(collective_) && say_record(collective_, right_);
            for (int r = plan_.near_begin; r < plan_.near_end; r++)
                has_begun = has_begun && handshake(collective_, r);
        }
        __syncthreads();
        return has_begun;
    }

    // Takes all turns. False if the run fails on the way. (`pass` is called at one place only: it
    // is long, and the compiler has to put it there.)
    __device__ bool go() {
        const std::size_t turns = slices_of_round + plan_.rounds * turns_of_round();
        for (std::size_t t = 0; t < turns; t++) {
            const bool hears_first = t == slices_of_round;
            if ((hears_first && !hear()) || !pass(turn_at(t)))
                return false;
        }
        return true;
    }

  private:
    // A slice at a step.
    struct Turn {
        int step;
        std::size_t slice;
    };

    // Returns which turn comes at which time. The slices of the first round leave; then each round
    // goes through its steps. Its last step and the first of the next round go hand in hand: there
    // is always something to send.
    __device__ Turn turn_at(std::size_t time) const {
        if (time < slices_of_round)
            return {plan_.first, time};
        const std::size_t since = time - slices_of_round;
        const std::size_t begin = since / turns_of_round() * slices_of_round;
        const std::size_t in_round = since % turns_of_round();
        if (in_round < turns_between()) {
            const int step = static_cast<int>(in_round / slices_of_round);
            return {plan_.first + 1 + step, begin + in_round % slices_of_round};
        }
        const std::size_t at_end = in_round - turns_between(), slice = begin + at_end / 2;
        if (at_end % 2 == 0)
            return {plan_.first, slice + slices_of_round};
        return {plan_.last, slice};
    }

    // Returns how many turns of a round are at the steps between the first and the last, and how
    // many there are in all. (A ring of one rank has one step.)
    __device__ std::size_t turns_between() const {
        const int steps = plan_.last - plan_.first - 1;
        return steps > 0 ? steps * slices_of_round : 0;
    }
    __device__ std::size_t turns_of_round() const { return turns_between() + 2 * slices_of_round; }

    // Hears what the left neighbour has begun. This rank's first slices are on their way by now.
    __device__ bool hear() {
        __shared__ bool is_same;
        if (threadIdx.x == 0)
            is_same = hear_record(collective_, left_, [this](const OperationRecord& theirs) {
                return is_same_call(collective_.record, theirs);
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

    // One slice of the chunk of a step: receives it, lets the work do its part, sends it on, if the
    // step asks for it. Nothing if there is no such slice.
    __device__ bool pass(Turn turn) {
        const int step = turn.step;
        const Chunk chunk = planned_chunk(plan_, chunk_in(step));
        const std::size_t begin = smaller_of(turn.slice * plan_.slice, chunk.size);
        const RingSlice slice{chunk, begin, smaller_of(plan_.slice, chunk.size - begin)};
        if (slice.size == 0)
            return true;
        const int complete = plan_.ranks - 1;
        const bool receives = step > plan_.first, sends = step < plan_.last;
        if (!find_slots(receives, sends))
            return false;
        const T* theirs = reinterpret_cast<const T*>(shared_slots().theirs);
        T* slot = reinterpret_cast<T*>(shared_slots().ours);
        work_.pass(slice, theirs, slot, !receives || step <= complete, step >= complete);
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

    const Collective& collective_;
    const RingPlan& plan_;
    Work& work_;
    FifoEnd left_, right_;
};

// The compiler would give a thread more registers than a block of so many has.
inline constexpr unsigned int most_ring_threads = 512;

// The launch shape of a walk: one block.
inline LaunchShape shape_of_walk() {
    return kernels_run_on_cpu ? shape_on_cpu(1) : LaunchShape(1, most_ring_threads);
}

}  // namespace ddp
