#pragma once
// The files of sharded checkpoints: one for each rank that has saved, in a folder of its own.
//
//     FOLDER/rank-0-of-4/checkpoint-00000050.safetensors
//     FOLDER/rank-1-of-4/checkpoint-00000050.safetensors
//     ...
//     FOLDER/rank-0-of-3/checkpoint-00000080.safetensors     three ranks have gone on
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "19_checkpoint_failover/state/checkpoints.hpp"

namespace ddp {

// A checkpoint: the files of all `ranks` that have saved step `step`.
struct SavedSet {
    int step = 0, ranks = 0;

    bool operator==(const SavedSet&) const = default;
};

class ShardFiles {
  public:
    explicit ShardFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}

    // Returns the folder of rank `rank` among `ranks`.
    std::filesystem::path of_rank(int rank, int ranks) const;
    // Returns the folders that are there, of any number of ranks, in the order of their names.
    std::vector<std::filesystem::path> all() const;

    // Returns the name of a file in messages: its path within the folder of all ranks.
    static std::string name(const SavedSet& set, int rank);
    // Returns every checkpoint of which at least one file is there, the newest first.
    std::vector<SavedSet> sets() const;
    // Returns what a rank's file says of its place, beside the state of the training.
    static std::map<std::string, std::string> place(int rank, int ranks);
    // Reads one rank's file. Throws DataError, with one sentence, if it is missing or damaged, or
    // is that of another rank or step.
    Safetensors read(const SavedSet& set, int rank) const;
    // Does the same, and refuses a file whose metadata is not that of `first`, rank 0's file: the
    // two are not of one training.
    Safetensors read(const SavedSet& set, int rank, const Safetensors& first) const;

  private:
    const std::filesystem::path folder_;
};

}  // namespace ddp
