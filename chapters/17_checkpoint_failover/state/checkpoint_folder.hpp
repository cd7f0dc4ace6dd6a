#pragma once
// Where a job's checkpoints are.
#include <filesystem>
#include <string>

#include "05_ranks/world.hpp"

namespace ddp {

class CheckpointFolder {
  public:
    // `given`, in which %h stands for the host's name; or, if that is empty, a folder that is gone
    // with the job.
    CheckpointFolder(World& world, const std::string& given);
    ~CheckpointFolder();
    CheckpointFolder(const CheckpointFolder&) = delete;
    CheckpointFolder& operator=(const CheckpointFolder&) = delete;

    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
    bool is_temporary_;
};

// A new one, for this process's user only.
std::filesystem::path make_temporary_folder();

}  // namespace ddp
