#pragma once
// The loop that all ranks run: an epoch of training, each rank on its part, and the test.
#include <functional>
#include <string>
#include <utility>

#include "03_network/layers/sequential.hpp"
#include "03_network/loader.hpp"
#include "03_network/optimizers.hpp"
#include "14_overlap/ddp.hpp"

namespace ddp {

// Where later chapters come in. Both are called by the rank's own thread, in every step of every
// rank.
struct TrainerPoints {
    std::function<void(const Batch& batch)> before_step = {};
    // All of it has been enqueued; `steps` have been made, of all epochs.
    std::function<void(int steps)> after_step = {};
};

class DdpTrainer {
  public:
    // All must live longer.
    DdpTrainer(Rank& rank, Device& device, Sequential& model, DistributedDataParallel& ddp,
               Optimizer& optimizer);

    // One pass over what loader.start_epoch was given, the same number of batches on every rank;
    // rank 0 shows a progress bar of that name. The totals of all ranks. Throws std::runtime_error
    // if the loss is no longer a number, with the step at which that began, counted from 1 over all
    // epochs, on the rank where it did; std::invalid_argument if there is no batch.
    Metrics::Totals epoch(Loader& loader, const std::string& name);

    // The totals of all ranks, each of which tests a part of the loader's samples.
    Metrics::Totals test(Loader& loader);

    // Step `step` of all epochs, from 0, will be written down, and the one behind it, in which
    // buckets are sent when backward has ended.
    void watch(int step) { watched_ = step; }
    // What all ranks did in these, on every rank. Empty for a step that did not come.
    const std::vector<StreamSpan>& timeline() const { return timeline_; }
    const std::vector<StreamSpan>& timeline_without_overlap() const { return without_overlap_; }
    // Of all epochs.
    int steps() const { return steps_; }
    // A training that goes on where another one was.
    void set_steps(int steps) { steps_ = steps; }
    void set_hooks(TrainerPoints hooks) { hooks_ = std::move(hooks); }
    // What this rank has added up in the running epoch.
    const Metrics& metrics() const { return metrics_; }

  private:
    void step(const Batch& batch);
    std::vector<StreamSpan> watched_step(const Batch& batch);
    void require_finite(const Metrics::Totals& mine, int steps_before);

    Rank& rank_;
    Device& device_;
    Sequential& model_;
    DistributedDataParallel& ddp_;
    ZeroedGradients gradients_;
    Metrics& metrics_;
    Tape tape_;
    TrainerPoints hooks_;
    StreamTrack* compute_ = nullptr;  // while a step is watched
    int steps_ = 0;
    int watched_ = -2;
    std::vector<StreamSpan> timeline_, without_overlap_;
};

}  // namespace ddp
