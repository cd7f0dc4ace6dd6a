#pragma once
// A job that is told to end. Its scheduler wants the machine: it sends SIGTERM, and SIGKILL after a
// grace time. The ranks stop after the same step, save, and are started again elsewhere.
#include "01_sgd/device.hpp"
#include "09_all_reduce/communicator.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {

// The exit status of a training that was told to end and has saved: "temporary failure, try again"
// of sysexits.h. It is no error, and the same command goes on.
inline constexpr int status_of_preemption = 75;

// Returns the sentence for it: what was saved, and what to do.
std::string text_of_preemption(int step);

// Thrown in a training that is told to end, on all ranks after the same step.
struct ToldToEnd {};

class Preemption {
  public:
    // From now on SIGTERM does not end this rank's process. All ranks call it together. Both must
    // outlive this object.
    Preemption(Communicator& communicator, Device& device);

    // Returns whether the training must end after the step that was enqueued last, since some
    // rank was told to. All ranks call it after each step, and get the same answer.
    bool is_told_to_end();

  private:
    // Questions: this step's, and that of the step before.
    static constexpr std::size_t in_flight = 2;

    Communicator& communicator_;
    Device& device_;
    ArenaBuffer<int> told_;          // on the device
    PinnedBuffer<int>&mine_, &any_;  // on the host: what this rank asks, what all say
    Event answered_[in_flight];
    std::size_t asked_ = 0;
};

// Returns the bytes that the communicator must have for it.
std::size_t preemption_arena_bytes();

}  // namespace ddp
