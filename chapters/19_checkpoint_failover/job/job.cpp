#include "19_checkpoint_failover/job/job.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>

#include "19_checkpoint_failover/job/status_line.hpp"
#include "common/report/bench.hpp"
#include "common/report/process.hpp"

namespace ddp {
namespace {

Descriptor open_process(pid_t process) {
    return Descriptor(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
}

// Returns whether the process has ended: a pidfd is then readable.
bool is_gone(const Descriptor& process) {
    pollfd ended{process.number(), POLLIN, 0};
    return process.number() < 0 || poll(&ended, 1, 0) == 1;
}

}  // namespace

SupervisedProcess::SupervisedProcess(const std::vector<std::string>& command) {
    std::array<Descriptor, 2> output = make_pipe(), error = make_pipe();
    process_ = start_process(
        command, {.environment = environment_with({std::string(supervised_variable) + "=1"}),
                  .input = -1,
                  .output = output[1].number(),
                  .error = error[1].number(),
                  .signal_at_end = SIGKILL,
                  .leads_group = true});
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
        status_ = exit_status(status);
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

void SupervisedProcess::signal_adopted(int number) const {
    for (const Descriptor& process : adopted_)
        if (process.number() >= 0)
            syscall(SYS_pidfd_send_signal, process.number(), number, nullptr, 0);
}

void SupervisedProcess::signal_all(int number) const {
    signal(number);
    signal_adopted(number);
}

void SupervisedProcess::ask_to_end() {
    was_asked_to_end_ = true;
    if (adopted_.empty())
        signal(SIGTERM);
    else
        signal_adopted(SIGTERM);
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
