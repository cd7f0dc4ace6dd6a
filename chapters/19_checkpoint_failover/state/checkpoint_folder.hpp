#pragma once
// The folder of a job's checkpoints.
#include <filesystem>
#include <optional>
#include <string>

#include "05_ranks/world.hpp"
#include "19_checkpoint_failover/state/temporary_folder.hpp"

namespace ddp {

class CheckpointFolder {
  public:
    // Takes the folder `given`, in which %h stands for the node's name. If `given` is empty, makes
    // a temporary folder.
    CheckpointFolder(World& world, const std::string& given);
    ~CheckpointFolder();
    CheckpointFolder(const CheckpointFolder&) = delete;
    CheckpointFolder& operator=(const CheckpointFolder&) = delete;

    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
    const bool is_temporary_;
    std::optional<TemporaryFolder> made_;  // in rank 0's process
};

}  // namespace ddp
