#pragma once
// The contract of the exercise shards: a checkpoint of several files, one for each rank, that is
// there as a whole or not at all.
#include <optional>

#include "19_checkpoint_failover/atomic_save.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

using Shards = std::vector<std::vector<std::uint8_t>>;  // by rank

// Saves `shards`, one or more, as the checkpoint of step `step`, which is 0 or more, and larger
// than all steps that load_shards has found before; a step whose saving was interrupted may come
// again, with other shards. Each shard is a file of its own. You choose the names, and may save
// more files than these.
//
// Task save_and_load. After it has returned, load_shards finds these shards.
// Task crash_safe. After it has returned, load_shards finds these shards even after a power
// failure. And wherever the process is killed within it, or the power fails, load_shards finds
// either all of these shards or all that it would have found before. Only if the save before was
// killed before it had returned, a failure of the power may bring back what was there before that.
void save_shards(Folder& folder, int step, const Shards& shards);

// Returns the shards of the last step that was saved, or nothing if there is none. The process that
// loads is another one than that which has saved, and knows the files alone. Changes no file.
std::optional<Shards> load_shards(const Folder& folder);

// Task forget_shards. Removes every file that load_shards does not need, whoever has written it.
// Wherever it is interrupted, load_shards finds the same shards as before; only after a save that
// was killed, as above, those before it.
void forget_shards(Folder& folder);

}  // namespace ddp
