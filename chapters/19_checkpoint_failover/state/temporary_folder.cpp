#include "19_checkpoint_failover/state/temporary_folder.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
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

// Returns a name that nobody else has.
std::filesystem::path new_name() {
    std::random_device random;
    std::ostringstream name;
    name << "ddp_checkpoints_" << std::hex << random() << random();
    const char* place = std::getenv("TMPDIR");
    return std::filesystem::path(place == nullptr ? "/tmp" : place) / name.str();
}

}  // namespace

// The shell comes first: if this process ends as soon as there is a folder, that goes, too.
TemporaryFolder::TemporaryFolder() : path_(new_name()) {
    std::array<Descriptor, 2> lifeline = make_pipe();  // read end, write end
    try {
        remover_ = start_process({"/bin/sh", "-c", remove_at_end, path_},
                                 {.input = lifeline[0].number(),
                                  .output = -1,
                                  .error = -1,
                                  .leads_group = true});  // Ctrl-C does not reach it
    } catch (const std::exception& error) {
        throw std::runtime_error("the shell that is to remove '" + path_.string() +
                                 "' at the end cannot be started (" + error.what() +
                                 "): give --folder a folder that is to stay.");
    }
    if (mkdir(path_.c_str(), S_IRWXU) != 0) {
        const std::string why = std::strerror(errno);
        kill(remover_, SIGKILL);  // what has this name is not ours to remove
        waitpid(remover_, nullptr, 0);
        throw std::runtime_error("'" + path_.string() + "' cannot be made (" + why +
                                 "): give --folder, or TMPDIR, a folder that is yours.");
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
