#pragma once
// A folder that removes itself.
#include <sys/types.h>

#include <filesystem>
#include <string>

#include "05_ranks/rendezvous.hpp"

namespace ddp {

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

}  // namespace ddp
