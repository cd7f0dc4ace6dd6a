#pragma once
// Lets a sharded training be killed at any moment, and go on with another number of ranks or at
// another stage. Every rank saves what it has, and nobody ever has the whole:
//
//     rank-0-of-4/checkpoint-00000050.safetensors    linear1                        its chunk
//                                                    optimizer.linear1.exp_avg      of each array
//                                                    optimizer.linear1.exp_avg_sq
//                                                    linear2 ...
//     rank-1-of-4/checkpoint-00000050.safetensors    ...
//
// The steps are those of CheckpointedRun, which saves the same state from one rank:
//
//     ShardedCheckpoints checkpoints(communicator, device, blocks_of(model), replica, optimizer,
//                                    plan, {...});
//     checkpoints.resume();
//     for each step that checkpoints.state() has not made yet:
//         forward, backward
//         checkpoints.wait_for_copy();
//         optimizer.step(), zero_gradients(), replica.after_step()
//         count the step and its samples in checkpoints.state()
//         checkpoints.save_if_due();
//     checkpoints.finish();
#include <map>
#include <optional>
#include <string>

#include "19_checkpoint_failover/checkpointed_run.hpp"
#include "22_sharded/sharded.hpp"
#include "22_sharded/support/shard_files.hpp"

namespace ddp {

class ShardedCheckpoints {
  public:
    // All ranks see `plan.folder`; none is made if that is empty. With `plan.takes_sigterm` the
    // communicator has preemption_arena_bytes() for it. Checkpoints of a training with another
    // `configuration` will be refused. `on_event` is the Saver's, on each rank. All ranks call it
    // together. Everything passed must outlive this object.
    ShardedCheckpoints(Communicator& communicator, Device& device, const Blocks& blocks,
                       ShardedDataParallel& replica, Optimizer& optimizer,
                       const CheckpointPlan& plan, std::map<std::string, std::string> configuration,
                       const Saver::OnEvent& on_event = {});
    ~ShardedCheckpoints();
    ShardedCheckpoints(const ShardedCheckpoints&) = delete;
    ShardedCheckpoints& operator=(const ShardedCheckpoints&) = delete;

    // Returns the state behind the last step that was enqueued: the training counts in it. Its plan
    // of buckets are the units, with which DistributedDataParallel goes on in the same bits.
    TrainingState& state() { return state_; }

    // Restores this rank's chunks from the newest checkpoint of which all files are whole and of
    // one training, if there is one, and returns which it was; otherwise saves the start. Begins
    // the next generation of the training. All ranks call it together, before the first step.
    // Throws OptionError if the checkpoint is of another training, and std::runtime_error if none
    // of them is whole.
    std::optional<SavedSet> resume();

    // These do what CheckpointedRun's do, on every rank.
    void wait_for_copy();
    void save_if_due();
    void save();
    void finish();

  private:
    struct Storage;

    std::optional<SavedSet> find_newest(std::vector<std::string>& errors);
    std::string error_in(const SavedSet& set) const;
    void load(const SavedSet& set);
    void begin_generation(int step);

    Communicator& communicator_;
    const Blocks blocks_;
    ShardedDataParallel& replica_;
    Optimizer& optimizer_;
    const CheckpointPlan plan_;
    const ShardFiles files_;
    TrainingTensors chunks_, whole_;  // every rank's own; what is not sharded, which rank 0 saves
    TrainingState state_;
    Storage* storage_ = nullptr;  // absent where no checkpoints are made
    std::optional<Preemption> preemption_;
};

// Puts the newest whole checkpoint of `folder` together, as DistributedDataParallel would have
// saved it: parameters and moments as a whole, by their names. CheckpointedRun reads it. Saves it
// in `target`, and returns its step. One process calls it; `blocks` are those of a model like the
// training's, before it is sharded or after. Throws DataError, with one sentence, if the newest
// checkpoint is not whole.
int save_whole_checkpoint(const std::filesystem::path& folder, const Blocks& blocks,
                          Folder& target);

}  // namespace ddp
