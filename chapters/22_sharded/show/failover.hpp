#pragma once
// A sharded training that goes on from its checkpoints, and what becomes of it when ranks are
// killed.
#include "05_ranks/world.hpp"
#include "19_checkpoint_failover/checkpointed_run.hpp"
#include "22_sharded/support/stages.hpp"
#include "common/report/options.hpp"

namespace ddp {

// Trains from the newest checkpoint to the last step of the plan. Sends status lines to the
// supervisor, if there is one; otherwise rank 0 prints. Returns the program's exit status.
int train_from_checkpoints(World& world, const LabelledImages& images, const StagePlan& plan,
                           const CheckpointPlan& checkpoints);

// Runs it as a supervised job of four ranks: undisturbed; with ranks that are killed, and come
// back; and with one that does not. Throws std::runtime_error if the second one ends in other bits
// than the first.
void show_failover(const StagePlan& plan, const CommonOptions& common);

}  // namespace ddp
