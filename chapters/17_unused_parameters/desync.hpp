#pragma once
// The desync report: when a step does not end, it says which rank waits for which, and which
// gradients never came.
//
// Every rank records its progress through the step on the host. When the run has failed, the next
// run gathers the records and compares them. (torch/csrc/distributed/c10d: the trace that
// TORCH_NCCL_DESYNC_DEBUG makes, and the names that TORCH_DISTRIBUTED_DEBUG adds.)
#include <stdexcept>
#include <string>
#include <vector>

#include "15_overlap/ddp.hpp"

namespace ddp {

// The progress of one rank, as it records it.
struct StepState {
    int step = 0;            // the last step that has begun, from 1
    int buckets = 0;         // the number of its buckets, ...
    int sent = 0;            // ... and of those that were sent
    std::string missing;     // names of the next bucket's parameters that got no gradient
    std::string afterwards;  // the rank's next action: "went on to ...", "has no batch left"

    bool operator==(const StepState&) const = default;
};

// Thrown by backward of a recorded step that lacks gradients.
class GradientsMissing : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Records the steps of `ddp` in `state`. Both must outlive this object.
class StepRecorder {
  public:
    StepRecorder(DistributedDataParallel& ddp, StepState& state) : ddp_(ddp), state_(state) {}
    // Takes before_forward (and calls the hook that was there), the bucket hook, and after_backward
    // if that is still free.
    void plug_into(DdpHooks& hooks);

  private:
    void begin_step(bool is_reduced);
    [[noreturn]] void refuse(const Parameters& missing);

    DistributedDataParallel& ddp_;
    StepState& state_;
};

// Returns the states of all ranks, by rank, on every rank. All ranks call it together.
std::vector<StepState> gather(Rank& rank, const StepState& mine);

// Returns the report, one line per rank. `states` has the states of all ranks, by rank.
std::vector<std::string> desync_report(const std::vector<StepState>& states);

}  // namespace ddp
