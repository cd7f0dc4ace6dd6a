#pragma once
// A job as its supervisor sees it: one program, which may have others under it, and the lines that
// come out of it.
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
    // command[0] is looked up on PATH. Throws std::runtime_error if it cannot be started.
    explicit SupervisedProcess(std::vector<std::string> command);
    // Ends what is left of it.
    ~SupervisedProcess();
    SupervisedProcess(const SupervisedProcess&) = delete;
    SupervisedProcess& operator=(const SupervisedProcess&) = delete;

    // Calls `on_line` for each line that has come on stdout or stderr; waits at most 10 ms for one.
    using OnLine = std::function<void(const std::string& line)>;
    void attend(const OnLine& on_line);
    // As a shell has it, once the program has ended.
    const std::optional<int>& status() const { return status_; }
    // To the program and all that it has started, unless they have left its group.
    void signal(int signal) const;
    pid_t process() const { return process_; }

    // A process of this machine that belongs to the job: it is not forgotten at the end.
    void adopt(pid_t process);
    // SIGTERM, then, after `patience_s`, SIGKILL; returns when all are gone, and has called
    // `on_line` for their last words.
    void end(double patience_s, const OnLine& on_line);

  private:
    struct Output {
        Descriptor read_end;
        std::string line;
    };
    void read(Output& output, const OnLine& on_line);
    bool all_are_gone() const;
    void signal_all(int signal) const;

    pid_t process_ = 0;
    Descriptor pidfd_;
    std::array<Output, 2> outputs_;
    std::vector<Descriptor>
        adopted_;  // pidfds: a number may be given to another process, these not
    std::optional<int> status_;
};

}  // namespace ddp
