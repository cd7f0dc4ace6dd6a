#pragma once
// The folder of a job's checkpoints.
#include <filesystem>
#include <string>

#include "05_ranks/world.hpp"

namespace ddp {

class CheckpointFolder {
  public:
    // Takes the folder `given`, in which %h stands for the host's name. If `given` is empty, makes
    // a temporary folder that is removed with this object.
    CheckpointFolder(World& world, const std::string& given);
    ~CheckpointFolder();
    CheckpointFolder(const CheckpointFolder&) = delete;
    CheckpointFolder& operator=(const CheckpointFolder&) = delete;

    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
    bool is_temporary_;
};

// Makes a new temporary folder that only this user can read, and returns its path.
std::filesystem::path make_temporary_folder();

}  // namespace ddp
