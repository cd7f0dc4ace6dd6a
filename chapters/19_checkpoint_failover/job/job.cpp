#include "19_checkpoint_failover/job/job.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "19_checkpoint_failover/job/status_line.hpp"
#include "common/report/bench.hpp"

namespace ddp {
namespace {

std::array<Descriptor, 2> make_pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw std::runtime_error(std::string("cannot make a pipe: ") + std::strerror(errno));
    return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// Runs the command in the child of fork: in a new process group, with its output in the pipes.
[[noreturn]] void become(char** command, pid_t parent, int output, int error) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)  // the parent died before prctl took effect
        _exit(1);
    setpgid(0, 0);
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(error, STDERR_FILENO);
    setenv(supervised_variable, "1", 1);
    execvp(command[0], command);
    dprintf(STDERR_FILENO, "error: cannot start %s: %s\n", command[0], std::strerror(errno));
    _exit(status_of_missing_program);
}

Descriptor open_process(pid_t process) {
    return Descriptor(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
}

// Returns whether the process has ended: a pidfd is then readable.
bool is_gone(const Descriptor& process) {
    pollfd ended{process.number(), POLLIN, 0};
    return process.number() < 0 || poll(&ended, 1, 0) == 1;
}

}  // namespace

SupervisedProcess::SupervisedProcess(std::vector<std::string> command) {
    std::vector<char*> words;
    for (std::string& word : command)
        words.push_back(word.data());
    words.push_back(nullptr);
    std::array<Descriptor, 2> output = make_pipe(), error = make_pipe();
    const pid_t parent = getpid();
    process_ = fork();
    if (process_ < 0)
        throw std::runtime_error(std::string("cannot start a process: ") + std::strerror(errno));
    if (process_ == 0)
        become(words.data(), parent, output[1].number(), error[1].number());
    setpgid(process_, process_);  // parent and child both do it: no matter which is first
    pidfd_ = open_process(process_);
    outputs_ = {Output{std::move(output[0]), ""}, Output{std::move(error[0]), ""}};
}

SupervisedProcess::~SupervisedProcess() {
    end(0, [](const std::string&) {});
}

void SupervisedProcess::read_lines(const OnLine& on_line) {
    pollfd ready[] = {{status_ ? -1 : pidfd_.number(), POLLIN, 0},
                      {outputs_[0].read_end.number(), POLLIN, 0},
                      {outputs_[1].read_end.number(), POLLIN, 0}};
    poll(ready, 3, 10);
    for (std::size_t i = 0; i < 2; i++)
        if (ready[i + 1].revents != 0)
            read(outputs_[i], on_line);
    int status = 0;
    if (!status_ && waitpid(process_, &status, WNOHANG) == process_)
        status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void SupervisedProcess::read(Output& output, const OnLine& on_line) {
    char bytes[16384];
    const ssize_t count = ::read(output.read_end.number(), bytes, sizeof bytes);
    if (count < 0 && errno == EINTR)
        return;
    if (count <= 0)
        output.read_end = Descriptor();
    else
        output.line.append(bytes, static_cast<std::size_t>(count));
    for (std::size_t end; (end = output.line.find('\n')) != std::string::npos;) {
        const std::string line = output.line.substr(0, end);
        output.line.erase(0, end + 1);
        on_line(line);
    }
}

void SupervisedProcess::signal(int signal) const {
    if (!status_)
        kill(-process_, signal);
}

void SupervisedProcess::adopt(pid_t process) {
    adopted_.push_back(open_process(process));
}

bool SupervisedProcess::all_are_gone() const {
    return status_ && std::ranges::all_of(adopted_, is_gone);
}

void SupervisedProcess::signal_all(int number) const {
    signal(number);
    for (const Descriptor& process : adopted_)
        if (process.number() >= 0)
            syscall(SYS_pidfd_send_signal, process.number(), number, nullptr, 0);
}

// SIGCONT lets a stopped process receive the SIGTERM; until it is continued, only SIGKILL works.
void SupervisedProcess::end(double patience_s, const OnLine& on_line) {
    signal_all(SIGTERM);
    signal_all(SIGCONT);
    const Stopwatch watch;
    while (!all_are_gone()) {
        if (watch.seconds() > patience_s)
            signal_all(SIGKILL);
        read_lines(on_line);
    }
    // All have ended: read what is still in the pipes.
    while (std::ranges::any_of(outputs_, [](const Output& output) {
        pollfd ready{output.read_end.number(), POLLIN, 0};
        return poll(&ready, 1, 0) == 1;
    }))
        read_lines(on_line);
}

}  // namespace ddp
