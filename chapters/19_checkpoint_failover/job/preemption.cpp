// SIGTERM comes to one rank, to those of one node, or to all, at any moment:
//
//     rank 0   step 136  told? 0 ┐      step 137  told? 0 ┐      step 138  what was 137's answer?
//     rank 1   step 136  told? 0 ├─ 0   step 137  told? 0 ├─ 1   step 138  1: save step 138, end
//     rank 2   step 136  told? 0 ┘  ▲   step 137  told? 1 ┘      step 138
//                                SIGTERM
//
// A rank that ended at once would leave the others waiting for it in step 137, and the work since
// the last checkpoint would be lost. So each step ends with a question: an all-reduce of one
// number, the largest of all ranks. The host reads the answer a step later. By then the device has
// it, and neither waits for the other.
#include "19_checkpoint_failover/job/preemption.hpp"

#include "11_data_parallel/replica.hpp"

namespace ddp {

std::string text_of_preemption(int step) {
    return "told to end (SIGTERM): step " + std::to_string(step) +
           " is saved; the same command, with the same --folder, goes on from there";
}

Preemption::Preemption(Communicator& communicator, Device& device)
    : communicator_(communicator),
      device_(device),
      told_(communicator.allocate<int>(in_flight)),
      mine_(make_run_scoped<PinnedBuffer<int>>(communicator.rank(), in_flight)),
      any_(make_run_scoped<PinnedBuffer<int>>(communicator.rank(), in_flight)) {
    communicator.rank().take_sigterm();
}

bool Preemption::is_told_to_end() {
    Stream& stream = device_.stream();
    // Ask. The place is free: its last question was answered a step ago.
    const std::size_t slot = asked_ % in_flight;
    mine_.data()[slot] = communicator_.rank().sigterm_has_come() ? 1 : 0;
    DDP_CHECK(cudaMemcpyAsync(told_.data() + slot, mine_.data() + slot, sizeof(int),
                              cudaMemcpyHostToDevice, stream));
    communicator_.all_reduce(told_.data() + slot, told_.data() + slot, 1, ReduceOp::maximum, stream,
                             "told to end");
    DDP_CHECK(cudaMemcpyAsync(any_.data() + slot, told_.data() + slot, sizeof(int),
                              cudaMemcpyDeviceToHost, stream));
    answered_[slot].record(stream);
    // Read the answer of the step before; the first step has none.
    if (asked_++ == 0)
        return false;
    const std::size_t before = asked_ % in_flight;
    answered_[before].synchronize();
    return any_.data()[before] == 1;
}

std::size_t preemption_arena_bytes() {
    return SharedArena::unit;
}

}  // namespace ddp
