#include "19_checkpoint_failover/state/temporary_folder.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

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

// Starts a shell in a session of its own, where Ctrl-C and signals to this process's group do not
// reach it. Its standard input is `input`, and it prints nothing.
pid_t start_shell(const char* script, const std::string& argument, int input) {
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    const char* words[] = {"sh", "-c", script, argument.c_str(), nullptr};
    pid_t process = -1;
    const int error =
        posix_spawn(&process, "/bin/sh", &files, &attributes, const_cast<char**>(words), environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    if (error != 0)
        throw std::runtime_error("the shell that is to remove '" + argument +
                                 "' at the end cannot be started (" + std::strerror(error) +
                                 "): give --folder a folder that is to stay.");
    return process;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw std::runtime_error(std::string("cannot make a pipe: ") + std::strerror(errno));
    const Descriptor read_end(ends[0]);
    lifeline_ = Descriptor(ends[1]);
    path_ = make_folder();
    try {
        remover_ = start_shell(remove_at_end, path_.string(), read_end.number());
    } catch (const std::exception&) {
        std::filesystem::remove(path_);
        throw;
    }
}

TemporaryFolder::~TemporaryFolder() {
    lifeline_ = Descriptor();
    while (waitpid(remover_, nullptr, 0) < 0 && errno == EINTR) {
    }
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);  // where there is no process left for its rm
}

}  // namespace ddp
