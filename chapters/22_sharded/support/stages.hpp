#pragma once
// One training at each stage: what it ends in, and what a rank keeps and receives for it.
#include <optional>
#include <string>

#include "05_ranks/world.hpp"
#include "19_checkpoint_failover/checkpointed_run.hpp"
#include "22_sharded/sharded.hpp"
#include "22_sharded/support/stage_models.hpp"

namespace ddp {

struct StageResult {
    std::string hash;  // of all parameters, the same on all ranks
    std::size_t parameters = 0, gradients = 0, moments = 0;  // bytes on this rank
    std::size_t at_most = 0;  // bytes of its device, with activations and the communicator
    std::size_t received_per_step = 0;  // bytes
    double seconds_per_step = 0;
    double first_loss = 0, last_loss = 0;            // of this rank
    std::vector<std::vector<StreamSpan>> timelines;  // of this rank's steps, if they are watched
};

struct StagePlan {
    int stage = 0;  // 0: DistributedDataParallel
    std::string model = "mlp";
    int steps = 20, batch = 32;
    std::string optimizer = "adam";
    std::optional<double> clip = std::nullopt;     // the longest gradient
    bool bfloat16 = false, prefetch = true;        // at stage 3
    bool is_watched = false;                       // at stages 1 to 3: each step
    std::optional<LinkSpeed> link = std::nullopt;  // a simulated one
    std::uint64_t seed = 1;
    // Between nodes: one ring has the order of a reduce-scatter over all ranks.
    AllReduceOrder order{.levels = 1};
};

// Counts a step that all ranks have made.
void count_step(TrainingState& state, const StagePlan& plan, const Rank& rank);

// Returns "0: DDP", "1", "2" or "3".
std::string name_of_stage(int stage);

// Returns how many moments the plan's optimizer keeps for each parameter.
std::size_t moments_of(const std::string& optimizer);
// Makes that optimizer.
std::unique_ptr<Optimizer> make_stage_optimizer(const std::string& name,
                                                const Parameters& parameters);

// Trains the plan's model on this rank's samples. All ranks call it together. Throws GpuError if
// the device has not enough memory.
StageResult train_at_stage(Rank& rank, const LabelledImages& images, const StagePlan& plan);

// Does the same at stage 3 within each node, replicated between the nodes of plan.order: all of
// them start with rank 0's model, and end with the same.
StageResult train_hybrid(Rank& rank, const LabelledImages& images, const StagePlan& plan);

// Returns the hash of all parameters, which it puts together on the host. Throws
// std::runtime_error if ranks differ. All ranks call it together.
std::string hash_of_sharded(Rank& rank, Device& host, ShardedDataParallel& sharded);

// Returns a sentence on the hashes of all stages, or none if there is only one, and names what
// makes some of them different. Throws std::runtime_error if they must be the same and are not.
std::string text_of_hashes(const std::vector<std::string>& hashes, const StagePlan& plan);

// Trains from the newest checkpoint to the last step of the plan. Sends status lines to the
// supervisor, if there is one; otherwise rank 0 prints. Returns the program's exit status.
int train_from_checkpoints(World& world, const LabelledImages& images, const StagePlan& plan,
                           const CheckpointPlan& checkpoints);

}  // namespace ddp
