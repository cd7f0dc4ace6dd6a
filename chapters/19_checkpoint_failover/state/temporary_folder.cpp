#include "19_checkpoint_failover/state/temporary_folder.hpp"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "common/report/process.hpp"

namespace ddp {
namespace {

// Waits until the pipe on stdin breaks. A rank that is being killed may still write a checkpoint,
// so one attempt may not be enough.
constexpr const char* remove_at_end = R"(
    read -r nothing
    for attempt in 1 2 3 4 5; do
        rm -rf -- "$0" && break
        sleep 0.2
    done)";

std::filesystem::path make_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "ddp_checkpoints_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
        throw std::runtime_error("'" + name + "' cannot be made (" + std::strerror(errno) +
                                 "): give --folder a folder that is yours.");
    return name;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
    std::array<Descriptor, 2> lifeline = make_pipe();  // read end, write end
    path_ = make_folder();
    try {
        remover_ = start_process({"/bin/sh", "-c", remove_at_end, path_},
                                 {.input = lifeline[0].number(),
                                  .output = -1,
                                  .error = -1,
                                  .leads_group = true});  // Ctrl-C does not reach it
    } catch (const std::exception& error) {
        std::filesystem::remove(path_);
        throw std::runtime_error("the shell that is to remove '" + path_.string() +
                                 "' at the end cannot be started (" + error.what() +
                                 "): give --folder a folder that is to stay.");
    }
    lifeline_ = std::move(lifeline[1]);
}

TemporaryFolder::~TemporaryFolder() {
    lifeline_ = Descriptor();
    while (waitpid(remover_, nullptr, 0) < 0 && errno == EINTR) {
    }
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);  // where there is no process left for its rm
}

}  // namespace ddp
