#pragma once
// The loop that every rank runs: an epoch of training on the rank's own samples, and the test.
#include <functional>
#include <string>
#include <utility>

#include "03_network/layers/fused_optimizers.hpp"
#include "03_network/layers/sequential.hpp"
#include "03_network/loader.hpp"
#include "15_overlap/ddp.hpp"

namespace ddp {

// The name of a timeline's span in which the compute stream waits for the last buckets.
inline constexpr const char* waiting_for_gradients = "waiting for gradients";

// The places in the loop at which later chapters add their own code. Both are called by the rank's
// own thread, in every step of every rank.
struct TrainerHooks {
    std::function<void(const Batch& batch)> before_step = {};
    // Called when the whole step has been enqueued. `steps`: steps made so far, over all epochs.
    std::function<void(int steps)> after_step = {};
};

// Throws OptionError if a `batch` of each rank is more than its share of so many pictures.
void require_batch(int batch, std::size_t pictures, int ranks);

// Makes the step of a batch, by calling `step` or by a graph of it.
using MakeStep =
    std::function<void(const Batch& batch, const std::function<void(const Batch&)>& step)>;

class DdpTrainer {
  public:
    // Everything passed must outlive this object.
    DdpTrainer(Rank& rank, Device& device, Sequential& model, DistributedDataParallel& ddp,
               Optimizer& optimizer);

    // Makes one pass over the samples that loader.start_epoch was given, which must be the same
    // number of batches on every rank; rank 0 shows a progress bar called `name`. Returns the
    // totals of all ranks. Throws std::runtime_error if the loss is infinite or no number, on the
    // rank where that began, with the step (counted from 1 over all epochs); std::invalid_argument
    // if there is no batch.
    Metrics::Totals epoch(Loader& loader, const std::string& name);

    // Tests the model on all of the loader's samples, divided among the ranks. Returns the totals
    // of all ranks.
    Metrics::Totals test(Loader& loader);

    // Returns the number of steps made, over all epochs.
    int steps() const { return steps_; }
    // Continues the count of an earlier run of the same training.
    void set_steps(int steps) { steps_ = steps; }
    void set_hooks(TrainerHooks hooks) { hooks_ = std::move(hooks); }
    void set_make_step(MakeStep make_step) { make_step_ = std::move(make_step); }
    // Records what the compute stream does in each step on `track`, which must outlive its use;
    // nullptr records nothing.
    void set_track(StreamTrack* track) { track_.set(track); }
    // Returns this rank's own totals in the running epoch.
    const Metrics& metrics() const { return metrics_; }

  private:
    void step(const Batch& batch);
    void require_finite(const Metrics::Totals& mine, int steps_before);

    Rank& rank_;
    Device& device_;
    Sequential& model_;
    DistributedDataParallel& ddp_;
    ZeroedGradients gradients_;
    Metrics& metrics_;
    Tape tape_;
    TrainerHooks hooks_;
    MakeStep make_step_;
    OptionalTrack track_;
    int steps_ = 0;
};

}  // namespace ddp
