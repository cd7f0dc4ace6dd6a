// Our own launcher, which does what torchrun and torch.multiprocessing.spawn do:
//
//     launch_processes              rank 0   rank 1   ...
//     1. listen at a free port
//     2. start_process         ───▶ main     main      with RANK, WORLD_SIZE, MASTER_ADDR, ...
//     3. print what they print ◀─── lines    lines     line by line
//     4. one has failed, or is stopped, or all have ended?
//     5. wait 2 s, SIGTERM, SIGKILL ───▶               so that nothing is left behind
//
//     at any time: SIGTERM     ───▶ SIGTERM  SIGTERM  whose ranks know what it means to them
//
// The ranks know best why one of them has failed. Step 5 gives them two seconds to report it.
#include <poll.h>
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

#include "05_ranks/coordinator/watchdog.hpp"
#include "05_ranks/environment.hpp"
#include "common/report/main.hpp"
#include "common/report/process.hpp"

namespace ddp {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// A rank's stdout or stderr: a pipe whose other end the rank writes to.
struct Output {
    Descriptor read_end;
    int terminal;          // the launcher's own stdout or stderr
    std::string line;      // the beginning of a line whose end has not been read
    bool is_lost = false;  // some of it could not be printed
};

// A rank that was started.
struct Process {
    pid_t id;
    Descriptor pidfd;  // readable when the process has ended; none before Linux 5.3
    std::array<Output, 2> outputs;
    std::optional<int> status;                      // from waitpid, once it has ended
    std::optional<Clock::time_point> stopped_from;  // while a signal has stopped it
};

// ---- Steps 1 and 2: start the ranks

// Returns the environment of rank `rank`: who it is, where rank 0 listens, and then the launcher's
// own variables.
std::vector<std::string> environment_of(int rank, int world_size,
                                        const RendezvousEndpoint& endpoint,
                                        const Descriptor& listener) {
    std::vector<std::string> all{"RANK=" + std::to_string(rank),
                                 "LOCAL_RANK=" + std::to_string(rank),
                                 "WORLD_SIZE=" + std::to_string(world_size),
                                 "LOCAL_WORLD_SIZE=" + std::to_string(world_size),
                                 "MASTER_ADDR=" + endpoint.addresses[0],
                                 "MASTER_PORT=" + std::to_string(endpoint.port),
                                 "TORCHELASTIC_RUN_ID=" + endpoint.job};
    if (rank == 0)
        all.push_back("DDP_LISTENER=" + std::to_string(listener.number()));
    return environment_with(all);
}

// Starts rank `rank` with this program and the arguments `argv`.
Process start(int rank, int world_size, const RendezvousEndpoint& endpoint,
              const Descriptor& listener, char** argv) {
    std::vector<std::string> command{std::filesystem::read_symlink("/proc/self/exe")};
    for (char** argument = argv + 1; *argument != nullptr; argument++)
        command.emplace_back(*argument);
    std::array<Descriptor, 2> output = make_pipe(), error = make_pipe();  // read end, write end
    const pid_t process =
        start_process(command, {.environment = environment_of(rank, world_size, endpoint, listener),
                                .output = output[1].number(),
                                .error = error[1].number(),
                                .kept = rank == 0 ? listener.number() : -1,
                                .signal_at_end = SIGKILL});
    // The launcher keeps the read ends of the pipes; the write ends close when this returns.
    const auto pidfd = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
    return {process,
            Descriptor(pidfd),
            {Output{std::move(output[0]), STDOUT_FILENO, "", false},
             Output{std::move(error[0]), STDERR_FILENO, "", false}},
            std::nullopt,
            std::nullopt};
}

// ---- Step 3: print what the ranks print

// Returns whether all of it was written.
bool write_all(int descriptor, const std::string& text) {
    for (std::size_t written = 0; written < text.size();) {
        const ssize_t count = write(descriptor, text.data() + written, text.size() - written);
        if (count < 0 && errno != EINTR)
            return false;  // the terminal is gone, or the disk is full
        written += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    }
    return true;
}

// Reads what is there, and prints it in whole lines, so that the lines of two ranks never mix.
void forward(Output& output) {
    char bytes[16384];
    const ssize_t count = read(output.read_end.number(), bytes, sizeof bytes);
    if (count > 0)
        output.line.append(bytes, static_cast<std::size_t>(count));
    // The pipe ends when the rank, and all that it has started, have closed it.
    const bool at_end = count == 0 || (count < 0 && errno != EINTR);
    if (at_end)
        output.read_end = Descriptor();
    const std::size_t whole = at_end ? output.line.size() : output.line.rfind('\n') + 1;
    output.is_lost |= !write_all(output.terminal, output.line.substr(0, whole));
    output.line.erase(0, whole);
}

// Takes note of a rank that has ended, was stopped or was continued.
void look_at(Process& process) {
    int status = 0;
    while (!process.status &&
           waitpid(process.id, &status, WNOHANG | WUNTRACED | WCONTINUED) == process.id)
        if (WIFSTOPPED(status))
            process.stopped_from = Clock::now();
        else if (WIFCONTINUED(status))
            process.stopped_from.reset();
        else
            process.status = status;
}

void send_signal(const std::vector<Process>& processes, int signal) {
    for (const Process& process : processes)
        if (!process.status)
            kill(process.id, signal);
}

// Waits until a rank prints something or ends, for 50 ms at most, and takes note of it. Passes a
// SIGTERM on.
void poll_processes(std::vector<Process>& processes, const Sigterm& sigterm) {
    // Three descriptors for each rank: its process, its stdout, its stderr.
    std::vector<pollfd> ready;
    for (const Process& process : processes) {
        ready.push_back({process.status ? -1 : process.pidfd.number(), POLLIN, 0});
        for (const Output& output : process.outputs)
            ready.push_back({output.read_end.number(), POLLIN, 0});
    }
    ready.push_back({sigterm.descriptor(), POLLIN, 0});
    poll(ready.data(), ready.size(), 50);
    if (sigterm.has_come()) {
        send_signal(processes, SIGTERM);
        send_signal(processes, SIGCONT);  // a stopped process could not react
    }
    // In the order of the three above: print what has arrived, and see which ranks have ended.
    const pollfd* next = ready.data();
    for (Process& process : processes) {
        next++;  // a pidfd only ends the wait
        for (Output& output : process.outputs)
            if ((next++)->revents != 0)
                forward(output);
        look_at(process);
    }
}

// ---- Steps 4 and 5: end them all

// Prints "launcher: rank 2 (process 4711)" and `what`.
void print_about(const std::vector<Process>& processes, const Process& process,
                 const std::string& what) {
    write_all(STDERR_FILENO, "launcher: rank " + std::to_string(&process - processes.data()) +
                                 " (process " + std::to_string(process.id) + ") " + what + "\n");
}

// Prints what is left in the pipes. Does not wait for their end: a process that a rank has left
// behind may keep one open.
void forward_the_rest(std::vector<Process>& processes) {
    for (Process& process : processes)
        for (Output& output : process.outputs)
            for (pollfd ready{output.read_end.number(), POLLIN, 0}; poll(&ready, 1, 0) == 1;
                 ready.fd = output.read_end.number())
                forward(output);
}

// Returns the lowest rank that has failed; null if none has. One that was ended by a signal comes
// before one that returned an error, which may follow from that.
const Process* first_failed(const std::vector<Process>& processes) {
    const Process* failed = nullptr;
    for (const Process& process : processes)
        if (process.status.value_or(0) != 0 &&
            (failed == nullptr || (WIFSIGNALED(*process.status) && !WIFSIGNALED(*failed->status))))
            failed = &process;
    return failed;
}

// Returns a rank that has been stopped for longer than the others wait for it; null if none has.
// They may have ended, and a stopped process does not.
const Process* find_stopped(const std::vector<Process>& processes, double timeout_s) {
    // Two seconds more than theirs: the others know more, and report first.
    const std::chrono::duration<double> limit(timeout_s + 2);
    for (const Process& process : processes)
        if (timeout_s > 0 && process.stopped_from && Clock::now() - *process.stopped_from > limit)
            return &process;
    return nullptr;
}

bool have_ended(const std::vector<Process>& processes) {
    return std::ranges::all_of(processes, [](const Process& p) { return p.status.has_value(); });
}

// Waits until all have ended, for at most `limit`.
void poll_for(std::vector<Process>& processes, const Sigterm& sigterm, std::chrono::seconds limit) {
    const Clock::time_point end = Clock::now() + limit;
    while (!have_ended(processes) && Clock::now() < end)
        poll_processes(processes, sigterm);
}

// Waits until all ranks have ended, or ends them when one has failed. Returns the exit status.
int wait_for_all(std::vector<Process>& processes, const Sigterm& sigterm, double timeout_s) {
    // Step 4: wait until one has failed, or is stopped, or all have ended.
    while (!have_ended(processes) && first_failed(processes) == nullptr &&
           find_stopped(processes, timeout_s) == nullptr)
        poll_processes(processes, sigterm);
    // The others end by themselves if they can. One of them may fail only because it has
    // heard that another rank was killed, and may be seen first. So the cause is looked for when
    // all have had time to end.
    poll_for(processes, sigterm, 2s);
    const Process* failed = first_failed(processes);
    const Process* stopped = find_stopped(processes, timeout_s);
    if (failed != nullptr && WIFSIGNALED(*failed->status))
        print_about(processes, *failed,
                    "was ended by signal " + std::to_string(WTERMSIG(*failed->status)) + " (" +
                        strsignal(WTERMSIG(*failed->status)) + ")");
    else if (failed == nullptr && stopped != nullptr)
        print_about(processes, *stopped, "is stopped, and the job cannot end without it");
    const int status = failed != nullptr ? exit_status(*failed->status) : stopped != nullptr;
    // Step 5: end the rest.
    for (const int signal : {SIGTERM, SIGKILL}) {
        send_signal(processes, signal);
        send_signal(processes, SIGCONT);  // a stopped process could not react
        poll_for(processes, sigterm, 1s);
    }
    while (!have_ended(processes))
        poll_processes(processes, sigterm);
    forward_the_rest(processes);
    const auto has_lost_output = [](const Process& p) { return p.outputs[0].is_lost; };
    if (status == 0 && std::ranges::any_of(processes, has_lost_output))
        throw std::runtime_error(output_is_lost);
    return status;
}

}  // namespace

std::optional<int> launch_processes(const CommonOptions& options, char** argv) {
    // The ranks of a job have --processes among their arguments as well: they must not start
    // others.
    if (!options.processes || find_starter(options) != StartedBy::none)
        return std::nullopt;
    // Rank 0 inherits this socket, so no other program can take the port in between.
    const Descriptor listener = listen_at("127.0.0.1", 0);
    const RendezvousEndpoint endpoint{{"127.0.0.1"}, port_of(listener), new_job_name()};
    const Sigterm sigterm;
    std::vector<Process> processes;
    for (int rank = 0; rank < *options.processes; rank++)
        processes.push_back(start(rank, *options.processes, endpoint, listener, argv));
    return wait_for_all(processes, sigterm, options.timeout_s);
}

}  // namespace ddp
