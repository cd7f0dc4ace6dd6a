#pragma once
// Exercise shards: a checkpoint of several files, one for each rank, all there or not at all.
//
//     saved before    while step 2 is saved                     later
//     1a 1b 1c        1a 1b 1c  2a        a crash: load 1       1a 1b 1c  2a 2b 2c    load 2
//
// 1. After save_shards has returned, load_shards finds these shards, even if the power fails.
// 2. If the process is killed within save_shards, or the power fails, load_shards finds either all
//    of the new shards or all of the old ones.
//
// You may call: all functions of Folder, and save_atomically(folder, name, {bytes}).
// The check also tries: other numbers of shards in each step, an empty shard.
#include <optional>

#include "19_checkpoint_failover/atomic_save.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

using Shards = std::vector<std::vector<std::uint8_t>>;  // by rank

// Saves `shards` as the checkpoint of step `step`, larger than all before. Each shard is a file of
// its own. You choose the names, and may write more files.
// Task save_and_load: nothing goes wrong. Task crash_safe: both rules hold.
void save_shards(Folder& folder, int step, const Shards& shards);

// Returns the last checkpoint, or nothing if there is none. Another process loads than saved: it
// knows only the files. Changes none.
std::optional<Shards> load_shards(const Folder& folder);

// Task forget_shards. Removes every file that load_shards doesn't need: all of them if there is no
// checkpoint. A crash within it, or after it, doesn't change what load_shards finds.
void forget_shards(Folder& folder);

}  // namespace ddp
