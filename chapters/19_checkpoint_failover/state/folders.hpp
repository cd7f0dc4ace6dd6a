#pragma once
// The folders that a job writes to: a folder of the file system, one that removes itself, and the
// one with the job's checkpoints, which is given or temporary.
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "05_ranks/rendezvous.hpp"
#include "05_ranks/world.hpp"
#include "19_checkpoint_failover/atomic_save.hpp"

namespace ddp {

// A folder of the file system.
class DiskFolder final : public Folder {
  public:
    // Creates the folder if it does not exist.
    explicit DiskFolder(std::filesystem::path path);

    bool make() override;
    void write(const std::string& name, std::initializer_list<Bytes> parts) override;
    void sync(const std::string& name) override;
    void rename(const std::string& from, const std::string& to) override;
    void sync_names() override;
    void remove(const std::string& name) override;
    std::vector<std::string> names() const override;
    std::vector<std::uint8_t> read(const std::string& name) const override;
    std::string path() const override { return path_.string(); }

  private:
    const std::filesystem::path path_;
};

// A new folder, which only this user can read. It is removed with the object, and also if this
// process ends without it, by Ctrl-C or kill -9.
class TemporaryFolder {
  public:
    // Throws std::runtime_error if it cannot be made.
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
    pid_t remover_ = -1;   // a shell that waits for the end of this process, and removes the folder
    Descriptor lifeline_;  // a pipe to it, which breaks when this process ends in any way
};

// The folder of a job's checkpoints.
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
