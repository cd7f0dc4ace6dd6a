#pragma once
// Rank 0's reports to the supervisor while a training goes on.
#include "15_overlap/training.hpp"
#include "19_checkpoint_failover/training_state.hpp"
#include "common/report/bench.hpp"

namespace ddp {

class TrainingStatus {
  public:
    // Everything passed must outlive this object.
    TrainingStatus(Rank& rank, Device& device, const DdpTrainer& trainer)
        : rank_(rank), device_(device), trainer_(trainer) {}

    void begin_epoch() { seen_ = {}; }
    // Reports every second which step is done, so that a slow job is known to go on, and after
    // every fifth step the mean loss of rank 0's samples since the last one: enough for a curve.
    // Rank 0's node is then one step ahead of its device, and not more. To be called when the step
    // `state.step` has been enqueued. Does nothing on other ranks, or without a supervisor.
    void report(const TrainingState& state);

  private:
    void report_progress(int step);
    void report_loss(const TrainingState& state);

    Rank& rank_;
    Device& device_;
    const DdpTrainer& trainer_;
    Metrics::Totals seen_;    // at the last report of a loss
    Event done_[2];           // the last two steps
    Stopwatch since_report_;  // of a step
};

}  // namespace ddp
