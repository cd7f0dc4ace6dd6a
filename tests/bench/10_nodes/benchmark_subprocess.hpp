#pragma once
// A program that is measured round by round in a process of its own, so that several can take
// turns. When it is warm it prints a line that begins with "# ". Then it answers each line
// of its stdin, such as `run STEPS`, with a line of numbers. The end of its stdin ends it.
#include <sys/types.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace ddp {

class BenchmarkSubprocess {
  public:
    // Starts `command` with these variables ("NAME=value") as its environment, and returns when it
    // is warm. Returns nothing if it cannot be started or ends before that. Its stderr is this
    // process's, or /dev/null if it is_quiet.
    static std::optional<BenchmarkSubprocess> start(const std::vector<std::string>& command,
                                                    std::vector<std::string> environment,
                                                    bool is_quiet);

    BenchmarkSubprocess(BenchmarkSubprocess&& other) noexcept;
    BenchmarkSubprocess& operator=(BenchmarkSubprocess&&) = delete;
    ~BenchmarkSubprocess();

    // Runs a round of `steps` steps, or what `line` asks for, and returns the numbers of the
    // answer. Throws std::runtime_error if the process has ended, or has answered something else.
    std::vector<double> run(int steps) { return ask("run " + std::to_string(steps)); }
    std::vector<double> ask(const std::string& line);

    // Returns the bytes that the process and all that it has started take now. What several of them
    // share, such as libraries and arenas, counts once. NaN where the system does not say.
    double memory_bytes() const;

    const std::string& greeting() const { return greeting_; }  // "PyTorch 2.15.0, ..."

  private:
    BenchmarkSubprocess() = default;
    bool answers_within(int milliseconds) const;
    std::string read_line();

    pid_t process_ = -1;
    std::FILE* to_ = nullptr;
    std::FILE* from_ = nullptr;
    std::string greeting_;
};

}  // namespace ddp
