#pragma once
// A job as its supervisor sees it: one program, which may start others, and the lines that they
// print.
#include <sys/types.h>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "05_ranks/rendezvous.hpp"

namespace ddp {

// A running program, in a process group of its own. It dies with this process.
class SupervisedProcess {
  public:
    // Starts the program; command[0] is looked up on PATH. Throws std::runtime_error if no process
    // can be made. For a program that cannot be started a line says why, and the status is
    // status_of_missing_program.
    explicit SupervisedProcess(const std::vector<std::string>& command);
    // Kills what is left of it.
    ~SupervisedProcess();
    SupervisedProcess(const SupervisedProcess&) = delete;
    SupervisedProcess& operator=(const SupervisedProcess&) = delete;

    // Calls `on_line` for each line that has come on stdout or stderr; waits at most 10 ms for one.
    using OnLine = std::function<void(const std::string& line)>;
    void read_lines(const OnLine& on_line);
    // Returns the exit status as a shell counts it, once the program has ended; nothing before.
    const std::optional<int>& status() const { return status_; }
    // Sends the signal to the program and to all processes of its group.
    void signal(int signal) const;
    pid_t process() const { return process_; }

    // Adds a process of this machine to those that end() ends and waits for.
    void adopt(pid_t process);
    // Sends SIGTERM to the ranks of this machine, or to the program while none is known. (mpirun
    // would kill its ranks a second later.)
    void ask_to_end();
    bool was_asked_to_end() const { return was_asked_to_end_; }
    // Sends SIGTERM and, after `patience_s` seconds, SIGKILL. Returns when all processes have ended
    // and `on_line` was called for their last lines.
    void end(double patience_s, const OnLine& on_line);

  private:
    struct Output {
        Descriptor read_end;
        std::string line;  // the part that has come of a line
    };
    void read(Output& output, const OnLine& on_line);
    bool all_are_gone() const;
    void signal_adopted(int signal) const;
    void signal_all(int signal) const;

    pid_t process_ = 0;
    Descriptor pidfd_;
    std::array<Output, 2> outputs_;  // stdout and stderr
    // The adopted processes, as pidfds: unlike its number, a pidfd never passes to another process.
    std::vector<Descriptor> adopted_;
    std::optional<int> status_;
    bool was_asked_to_end_ = false;
};

}  // namespace ddp
