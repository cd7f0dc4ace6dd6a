#pragma once
// The desync report: when a step does not end, who waits for what, and which gradients never came.
//
// Every rank writes down what it does in a step, on the host. When the run has failed, the next one
// gathers what all have written, and compares. (torch/csrc/distributed/c10d: the trace that
// TORCH_NCCL_DESYNC_DEBUG makes, and the names that TORCH_DISTRIBUTED_DEBUG adds.)
#include <stdexcept>
#include <string>
#include <vector>

#include "14_overlap/ddp.hpp"

namespace ddp {

// How far a rank has come.
struct StepState {
    int step = 0;      // the last one that was begun, from 1
    int buckets = 0;   // that it has, ...
    int sent = 0;      // ... and how many of these were sent
    std::string lost;  // of the first bucket that is not: the parameters without a gradient
    std::string then;  // what the rank did next: "went on to ...", "has no batch left"

    bool operator==(const StepState&) const = default;
};

// Thrown by backward of a recorded step that lacks gradients.
class GradientsMissing : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Writes the steps of `ddp` down in `state`, both of which must live longer.
class StepRecorder {
  public:
    StepRecorder(DistributedDataParallel& ddp, StepState& state) : ddp_(ddp), state_(state) {}
    // Takes before_forward, the bucket hook, and after_backward unless somebody has it.
    void plug_into(DdpHooks& hooks);

  private:
    void begin_step(bool is_reduced);
    [[noreturn]] void refuse(const Parameters& missing);

    DistributedDataParallel& ddp_;
    StepState& state_;
};

// Everyone's state, by rank, on every rank. All ranks call it together.
std::vector<StepState> gather(Rank& rank, const StepState& mine);

// A line for each rank. Those that have come farther than others wait for them.
std::vector<std::string> desync_report(const std::vector<StepState>& states);

}  // namespace ddp
