#include "common/report/process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace ddp {
namespace {

// Returns pointers to `words`, with a null pointer at the end, as execve wants them.
std::vector<char*> pointers_to(const std::vector<std::string>& words) {
    std::vector<char*> pointers;
    for (const std::string& word : words)
        pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

// Makes `file` the standard input, output or error.
void use_file(int file, int standard) {
    if (file < 0)
        file = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (file == standard)
        fcntl(file, F_SETFD, 0);
    else
        dup2(file, standard);
}

// Runs in the child after fork, and makes it the new program. Nothing here takes memory: the child
// of a program with threads must not allocate.
[[noreturn]] void become(char* const* command, char* const* variables,
                         const ProcessSettings& settings, pid_t parent) {
    if (settings.signal_at_end != 0) {
        // Whatever happens to the parent, even kill -9, this process ends with it.
        prctl(PR_SET_PDEATHSIG, settings.signal_at_end);
        if (getppid() != parent)  // the parent died before the line above
            _exit(1);
    }
    if (settings.leads_group)
        setpgid(0, 0);
    // This process may have set SIGTERM aside; the new program may not know of it.
    sigset_t sigterm;
    sigemptyset(&sigterm);
    sigaddset(&sigterm, SIGTERM);
    std::signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &sigterm, nullptr);
    use_file(settings.input, STDIN_FILENO);
    use_file(settings.output, STDOUT_FILENO);
    use_file(settings.error, STDERR_FILENO);
    if (settings.kept >= 0)
        fcntl(settings.kept, F_SETFD, 0);  // keeps it open in the new program
    // The program begins, with its variables. (execve returns only if it fails.)
    execvpe(command[0], command, variables);
    dprintf(STDERR_FILENO, "error: cannot start %s: %s\n", command[0], std::strerror(errno));
    _exit(status_of_missing_program);
}

}  // namespace

std::vector<std::string> environment_with(const std::vector<std::string>& added) {
    std::vector<std::string> all = added;
    for (char** entry = environ; *entry != nullptr; entry++) {
        const std::string text = *entry, name = text.substr(0, text.find('=') + 1);
        if (std::ranges::none_of(added, [&](const auto& word) { return word.starts_with(name); }))
            all.push_back(text);
    }
    return all;
}

pid_t start_process(const std::vector<std::string>& command, const ProcessSettings& settings) {
    const std::vector<char*> words = pointers_to(command);
    const std::vector<char*> variables = pointers_to(settings.environment);
    const pid_t parent = getpid(), child = fork();
    if (child < 0)
        throw std::runtime_error(std::string("cannot start a process: ") + std::strerror(errno));
    if (child == 0)
        become(words.data(), variables.data(), settings, parent);
    if (settings.leads_group)
        setpgid(child, child);  // both do it: no matter which is first
    return child;
}

std::optional<std::filesystem::path> find_in_book(const std::string& file) {
    std::error_code error;
    std::filesystem::path folder =
        std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
    for (; folder != folder.root_path(); folder = folder.parent_path())
        if (std::filesystem::exists(folder / file, error))
            return folder / file;
    return std::nullopt;
}

std::string host_name() {
    char name[HOST_NAME_MAX + 1] = "";
    gethostname(name, sizeof name - 1);
    return name;
}

int exit_status(int wait_status) {
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace ddp
