#pragma once
// Lets a training be killed at any moment and started again:
//
//     CheckpointedRun run(communicator, device, model, optimizer, plan, configuration);
//     run.set_hooks(...);
//     run.resume();
//     for each step that run.state() has not counted yet:
//         forward, backward
//         run.wait_for_copy();
//         optimizer.step();
//         count the step and its samples in run.state()
//         run.save_if_due();
//     run.finish();
//
// If a ToldToEnd leaves the loop, only finish() is left to do.
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "19_checkpoint_failover/job/preemption.hpp"
#include "19_checkpoint_failover/saver.hpp"

namespace ddp {

struct CheckpointPlan {
    std::filesystem::path folder = {};  // of the checkpoints; empty: no checkpoints
    int every = 100;                    // steps between two checkpoints
    int keep = 2;                       // checkpoints that stay
    bool takes_sigterm = false;         // saves and ends (preemption.hpp)
};

// The rest of a training's state, beyond tensors, counts and the optimizer's numbers: the bucket
// plan (DistributedDataParallel::state), a random generator. Either hook may be absent.
struct CheckpointHooks {
    std::function<void(TrainingState& state)> before_save = {};         // writes it into the state
    std::function<void(const TrainingState& state)> after_resume = {};  // restores it
};

class CheckpointedRun {
  public:
    // Refuses checkpoints of a training with a different `configuration`. The Saver calls
    // `on_event`. All ranks call it together. Everything passed must outlive this object.
    CheckpointedRun(Communicator& communicator, Device& device, const Module& model,
                    Optimizer& optimizer, const CheckpointPlan& plan,
                    std::map<std::string, std::string> configuration,
                    const Saver::OnEvent& on_event = {});
    ~CheckpointedRun();
    CheckpointedRun(const CheckpointedRun&) = delete;
    CheckpointedRun& operator=(const CheckpointedRun&) = delete;

    void set_hooks(CheckpointHooks hooks) { hooks_ = std::move(hooks); }

    // Returns the state after the last enqueued step. The training counts in it.
    TrainingState& state() { return state_; }

    // Restores the newest whole checkpoint of any node, if there is one, and begins the next
    // generation of the training: an earlier one that wakes up ends at its next save. Returns the
    // rank that had the checkpoint. All ranks call it together, before the first step. Throws
    // OptionError if the checkpoint is from a different training, and std::runtime_error if none of
    // them is whole.
    std::optional<int> resume();

    // Makes the device's stream wait until the last checkpoint is copied. After that, the optimizer
    // may change its tensors.
    void wait_for_copy();
    // Save the state if a checkpoint is due, or now. The device may still be computing the step.
    // The first throws ToldToEnd if the training should end here: all ranks call it after each
    // step.
    void save_if_due();
    void save();
    // Saves the state after the last step, so that a training that is started again finds nothing
    // left to do. Waits until it is on the disk; throws the error if it failed.
    void finish();

    // Returns the seconds of this rank's saves; nothing if it writes no checkpoints. Call it after
    // finish().
    std::optional<Saver::Seconds> save_seconds() const;

  private:
    struct Storage;

    Communicator& communicator_;
    Device& device_;
    Optimizer& optimizer_;
    const TrainingTensors tensors_;
    const int every_;
    TrainingState state_;
    CheckpointHooks hooks_;
    Storage* storage_ = nullptr;  // absent where no checkpoints are made
    std::optional<Preemption> preemption_;
};

}  // namespace ddp
