#pragma once
// Resumes a training from the newest checkpoint that any node has. No rank is special: the rank
// that finds it broadcasts it to all, and need not be the one that wrote it.
#include <optional>
#include <string>
#include <vector>

#include "09_all_reduce/communicator.hpp"
#include "19_checkpoint_failover/state/checkpoints.hpp"
#include "19_checkpoint_failover/training_state.hpp"

namespace ddp {

// Returns whether this rank writes checkpoints: rank 0 does, and where nodes have folders of their
// own also the first rank of each node. All ranks call it together.
bool writes_checkpoints(Rank& rank, Folder& folder);

// Begins the next generation of the training, after all that the writers' folders know of. All
// ranks call it together; `writes`: whether this one writes checkpoints.
void begin_next_generation(Rank& rank, Checkpoints& checkpoints, bool writes);

// Copies the file's values into `tensors`, by name. Throws DataError, with a sentence that begins
// with `name`, if a tensor is missing or has another shape.
void load_tensors(const Safetensors& file, const std::vector<NamedTensor>& tensors,
                  const std::string& name);

struct Resumed {
    TrainingState state;
    int from_rank = 0;  // the rank whose checkpoint it was
};

// Loads the newest whole checkpoint of any node into the tensors of all ranks, and returns its
// state; nothing if there is no checkpoint. Adds a sentence to `errors` for each damaged checkpoint
// on this rank's node. Throws OptionError if the checkpoint is of another training
// (require_same_configuration). All ranks call it together, before the first step.
std::optional<Resumed> resume(Communicator& communicator, Device& device,
                              const Checkpoints& checkpoints, const TrainingTensors& tensors,
                              const std::map<std::string, std::string>& configuration,
                              std::vector<std::string>& errors);

// Returns the bytes that the communicator must have for it.
std::size_t resume_arena_bytes();

}  // namespace ddp
