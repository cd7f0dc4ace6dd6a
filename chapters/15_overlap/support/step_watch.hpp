#pragma once
// The timelines of two steps of a training, for the picture of a step.
#include "06_messages/support/timeline.hpp"
#include "15_overlap/training.hpp"

namespace ddp {

// A step as the reader asked for it (with overlap, unless it was switched off), and one without
// overlap, which may be empty.
struct TwoSteps {
    std::vector<StreamSpan> usual, without_overlap;
};

class StepWatch {
  public:
    // Becomes the trainer's hooks, and records step `step`, counted from 0 over all epochs, and the
    // step after it, which runs without overlap. All ranks call it together. Everything passed must
    // outlive the training.
    StepWatch(Rank& rank, Device& device, Sequential& model, DistributedDataParallel& ddp,
              DdpTrainer& trainer, int step);

    // Returns what all ranks did in these two steps, on every rank; empty if the step did not come.
    const TwoSteps& steps() const { return steps_; }

  private:
    void begin(bool overlaps);
    std::vector<StreamSpan> end();

    Rank& rank_;
    Device& device_;
    Sequential& model_;
    DistributedDataParallel& ddp_;
    DdpTrainer& trainer_;
    const bool overlaps_;  // in the steps that are not watched
    // A track for each of the two streams, while a step is watched.
    std::optional<StreamTrack> compute_, communication_;
    TwoSteps steps_;
};

}  // namespace ddp
