// Our own launcher: what torchrun and torch.multiprocessing.spawn do. It starts the program once
// for each rank, tells each by environment variables who it is and where to meet, passes on what
// they print, and ends all when one has failed.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "05_ranks/environment.hpp"

namespace ddp {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// One end of a rank's stdout or stderr, and the line that has not ended yet.
struct Output {
    Descriptor read_end;
    int terminal;  // this process's own descriptor of the same kind
    std::string line;
};

struct Process {
    pid_t id;
    Descriptor pidfd;  // readable when the process has ended; none before Linux 5.3
    std::array<Output, 2> outputs;
    std::optional<int> status;  // as waitpid gives it
};

std::vector<std::string> environment_of(int rank, int world_size, const RendezvousEndpoint& place,
                                        const Descriptor& listener) {
    std::vector<std::string> all{"RANK=" + std::to_string(rank),
                                 "LOCAL_RANK=" + std::to_string(rank),
                                 "WORLD_SIZE=" + std::to_string(world_size),
                                 "LOCAL_WORLD_SIZE=" + std::to_string(world_size),
                                 "MASTER_ADDR=" + place.addresses[0],
                                 "MASTER_PORT=" + std::to_string(place.port),
                                 "TORCHELASTIC_RUN_ID=" + place.job};
    if (rank == 0)
        all.push_back("DDP_LISTENER=" + std::to_string(listener.number()));
    for (char** entry = environ; *entry != nullptr; entry++)
        all.push_back(*entry);
    return all;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> result;
    for (std::string& word : words)
        result.push_back(word.data());
    result.push_back(nullptr);
    return result;
}

std::array<Descriptor, 2> make_pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw std::runtime_error(std::string("cannot make a pipe: ") + std::strerror(errno));
    return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// The child's side of fork: it becomes the program again, and dies with its parent.
[[noreturn]] void become_rank(pid_t parent, int output, int error, int listener,
                              const char* program, char** argv, char** environment) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)  // it died before we could ask to be told
        _exit(1);
    dup2(output, STDOUT_FILENO);
    dup2(error, STDERR_FILENO);
    if (listener >= 0)
        fcntl(listener, F_SETFD, 0);  // it stays open in the new program
    execve(program, argv, environment);
    _exit(127);
}

Process start(int rank, int world_size, const RendezvousEndpoint& place, const Descriptor& listener,
              char** argv) {
    const std::string program = std::filesystem::read_symlink("/proc/self/exe");
    std::vector<std::string> environment = environment_of(rank, world_size, place, listener);
    const std::vector<char*> variables = pointers(environment);
    std::array<Descriptor, 2> output = make_pipe(), error = make_pipe();
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child < 0)
        throw std::runtime_error(std::string("cannot start a process: ") + std::strerror(errno));
    if (child == 0)
        become_rank(parent, output[1].number(), error[1].number(),
                    rank == 0 ? listener.number() : -1, program.c_str(), argv,
                    const_cast<char**>(variables.data()));
    const auto pidfd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
    return {child,
            Descriptor(pidfd),
            {Output{std::move(output[0]), STDOUT_FILENO, ""},
             Output{std::move(error[0]), STDERR_FILENO, ""}},
            std::nullopt};
}

void write_all(int descriptor, const std::string& text) {
    for (std::size_t written = 0; written < text.size();) {
        const ssize_t count = write(descriptor, text.data() + written, text.size() - written);
        if (count < 0 && errno != EINTR)
            return;  // nobody reads what we print
        written += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    }
}

// Passes on whole lines, so that those of two ranks never mix.
void pass_on(Output& output) {
    char bytes[16384];
    const ssize_t count = read(output.read_end.number(), bytes, sizeof bytes);
    if (count > 0)
        output.line.append(bytes, static_cast<std::size_t>(count));
    const bool at_end = count == 0 || (count < 0 && errno != EINTR);
    if (at_end)
        output.read_end = Descriptor();
    const std::size_t whole = at_end ? output.line.size() : output.line.rfind('\n') + 1;
    write_all(output.terminal, output.line.substr(0, whole));
    output.line.erase(0, whole);
}

// Waits for something to happen, and takes it in.
void attend(std::vector<Process>& processes) {
    std::vector<pollfd> ready;
    for (const Process& process : processes) {
        ready.push_back({process.status ? -1 : process.pidfd.number(), POLLIN, 0});
        for (const Output& output : process.outputs)
            ready.push_back({output.read_end.number(), POLLIN, 0});
    }
    poll(ready.data(), ready.size(), 50);
    const pollfd* next = ready.data();
    for (Process& process : processes) {
        next++;  // wakes us
        for (Output& output : process.outputs)
            if ((next++)->revents != 0)
                pass_on(output);
        int status = 0;
        if (!process.status && waitpid(process.id, &status, WNOHANG) == process.id)
            process.status = status;
    }
}

// What a shell makes of it: the exit status, or 128 and the signal's number.
int exit_status(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void say_what_ended(int rank, pid_t process, int signal) {
    write_all(STDERR_FILENO, "launcher: rank " + std::to_string(rank) + " (process " +
                                 std::to_string(process) + ") was ended by signal " +
                                 std::to_string(signal) + " (" + strsignal(signal) + ")\n");
}

void send_signal(const std::vector<Process>& processes, int signal) {
    for (const Process& process : processes)
        if (!process.status)
            kill(process.id, signal);
}

// What the ranks printed last; if they have left processes of their own behind, not what those
// print.
void pass_on_the_rest(std::vector<Process>& processes) {
    for (Process& process : processes)
        for (Output& output : process.outputs)
            for (pollfd ready{output.read_end.number(), POLLIN, 0}; poll(&ready, 1, 0) == 1;
                 ready.fd = output.read_end.number())
                pass_on(output);
}

// The first process that has failed: by a signal rather than by an exit status, which may follow
// from that.
const Process* first_failed(const std::vector<Process>& processes) {
    const Process* failed = nullptr;
    for (const Process& process : processes)
        if (process.status.value_or(0) != 0 &&
            (failed == nullptr || (WIFSIGNALED(*process.status) && !WIFSIGNALED(*failed->status))))
            failed = &process;
    return failed;
}

bool have_ended(const std::vector<Process>& processes) {
    return std::ranges::all_of(processes, [](const Process& p) { return p.status.has_value(); });
}

// Until all have ended; returns the exit status. The ranks know best why one has failed, and are
// given time to say so; those that are still there then are told to end, and at last made to.
int attend_until_all_have_ended(std::vector<Process>& processes) {
    while (!have_ended(processes) && first_failed(processes) == nullptr)
        attend(processes);
    const Process* failed = first_failed(processes);
    const int status = failed == nullptr ? 0 : *failed->status;
    if (WIFSIGNALED(status))
        say_what_ended(static_cast<int>(failed - processes.data()), failed->id, WTERMSIG(status));
    for (const int signal : {0, SIGTERM, SIGKILL}) {
        send_signal(processes, signal);
        if (signal != 0)
            send_signal(processes, SIGCONT);  // one that is stopped could not even end
        const Clock::time_point patience_ends = Clock::now() + (signal == 0 ? 2s : 1s);
        while (!have_ended(processes) && (Clock::now() < patience_ends || signal == SIGKILL))
            attend(processes);
    }
    pass_on_the_rest(processes);
    return exit_status(status);
}

}  // namespace

std::optional<int> launch_processes(const CommonOptions& options, char** argv) {
    if (!options.processes || find_starter(options) != StartedBy::nobody)
        return std::nullopt;
    // Rank 0 gets this very socket: nobody else can take its port in between.
    const Descriptor listener = listen_at("127.0.0.1", 0);
    const RendezvousEndpoint place{{"127.0.0.1"}, port_of(listener), new_job_name()};
    std::vector<Process> processes;
    for (int rank = 0; rank < *options.processes; rank++)
        processes.push_back(start(rank, *options.processes, place, listener, argv));
    return attend_until_all_have_ended(processes);
}

}  // namespace ddp
