#pragma once
// The contract of the exercise shards: a checkpoint that is several files, one for each rank, and
// that is there as a whole or not at all.
#include <optional>

#include "17_checkpoint_failover/atomic_save.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

using Shards = std::vector<std::vector<std::uint8_t>>;  // by rank

// Saves `shards`, one or more, as those of step `step`, which is larger than that of any before.
// Each is to be a file of its own; their names are yours, and you may save more files than these.
//
// Task save_and_load. When it has returned, load_shards finds these.
// Task crash_safe. When it has returned, load_shards finds these even after a failure of the power.
// And wherever the process is killed in it, or the power fails, load_shards finds either all of
// these or all that it would have found before.
void save_shards(Folder& folder, int step, const Shards& shards);

// Those of the last step that was saved; nothing if none was. Changes nothing.
std::optional<Shards> load_shards(const Folder& folder);

// Task forget_shards. Removes every file that load_shards does not need. Wherever it is
// interrupted, load_shards finds what it would have found before.
void forget_shards(Folder& folder);

}  // namespace ddp
