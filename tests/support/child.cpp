#include "tests/support/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <system_error>

#include "common/report/process.hpp"

namespace ddp::test {

ChildResult run_command(const std::vector<std::string>& command,
                        const std::vector<std::string>& environment, int timeout_s) {
    int output[2];
    if (pipe2(output, O_CLOEXEC) != 0)
        throw std::system_error(errno, std::generic_category(), "pipe2");
    const pid_t pid = start_process(
        command,
        {.environment = environment_with(environment), .output = output[1], .error = output[1]});
    close(output[1]);
    ChildResult result;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(timeout_s);
    char text[4096];
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        pollfd ready{output[0], POLLIN, 0};
        if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) <= 0) {
            kill(pid, SIGKILL);
            break;
        }
        const ssize_t count = read(output[0], text, sizeof text);
        if (count <= 0)
            break;
        result.output.append(text, static_cast<std::size_t>(count));
    }
    close(output[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return result;
}

ChildResult run_child(const std::string& name, const std::vector<std::string>& environment,
                      int timeout_s) {
    return run_command({"/proc/self/exe", name}, environment, timeout_s);
}

bool user_limits_count() {
    return getuid() == 0 && run_command({"bash", "-c", "setpriv --version"}).exit_code == 0;
}

ChildResult run_limited(int processes, const std::vector<std::string>& command,
                        const std::vector<std::string>& environment) {
    // What lies in a folder of root is handed over open, as descriptor 9.
    std::vector<std::string> words{
        "bash", "-c",
        "exec 9<\"$1\"; shift; exec setpriv --reuid=61234 --regid=61234 --clear-groups "
        "bash -c 'ulimit -u \"$0\"; exec /proc/self/fd/9 \"$@\"' \"$0\" \"$@\"",
        std::to_string(processes)};
    words.insert(words.end(), command.begin(), command.end());
    return run_command(words, environment);
}

}  // namespace ddp::test
