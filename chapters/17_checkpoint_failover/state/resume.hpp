#pragma once
// How a job that begins finds out where an earlier one was. No rank is special: whichever has the
// newest checkpoint gives it to all, and that may be another one than the one that wrote it.
#include <optional>
#include <string>
#include <vector>

#include "09_all_reduce/communicator.hpp"
#include "17_checkpoint_failover/state/checkpoints.hpp"
#include "17_checkpoint_failover/training_state.hpp"

namespace ddp {

// Whether this rank is to write checkpoints: rank 0 where all hosts see the same folder, otherwise
// the first rank of each host. All ranks call it together.
bool writes_checkpoints(Rank& rank, Folder& folder);

// Copies the file's values into `tensors`, by name. Throws DataError, in a sentence that begins
// with `name`, if one is not there or has another shape.
void load_tensors(const Safetensors& file, const std::vector<NamedTensor>& tensors,
                  const std::string& name);

struct Resumed {
    TrainingState state;
    int from_rank = 0;
};

// The newest checkpoint that any host has, in the tensors of all ranks. Nothing if there is none at
// all. `complaints` gets what was damaged on this rank's host. All ranks call it together, before
// the first step; configurations are compared first (require_same_configuration).
std::optional<Resumed> resume(Communicator& communicator, Device& device,
                              const Checkpoints& checkpoints, const TrainingTensors& tensors,
                              const std::map<std::string, std::string>& configuration,
                              std::vector<std::string>& complaints);

// What make_communicator must be given for it.
std::size_t resume_arena_bytes();

}  // namespace ddp
