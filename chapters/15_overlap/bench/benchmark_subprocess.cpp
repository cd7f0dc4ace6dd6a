#include "15_overlap/bench/benchmark_subprocess.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace ddp {
namespace {

constexpr int longest_answer_ms = 600'000;

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts)
        pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

// Starts `command` with these ends of pipes as stdin and stdout. -1 if it cannot be started.
pid_t spawn(std::vector<std::string> command, std::vector<std::string> environment, int in, int out,
            bool is_quiet) {
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    if (is_quiet)
        posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t process = -1;
    const int error = posix_spawnp(&process, command[0].c_str(), &files, nullptr,
                                   pointers_to(command).data(), pointers_to(environment).data());
    posix_spawn_file_actions_destroy(&files);
    return error == 0 ? process : -1;
}

}  // namespace

std::optional<BenchmarkSubprocess> BenchmarkSubprocess::start(std::vector<std::string> command,
                                                              std::vector<std::string> environment,
                                                              bool is_quiet) {
    std::array<int, 2> in{}, out{};
    if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0)
        throw std::runtime_error(
            "no more pipes can be opened: close other programs, or raise ulimit -n");
    BenchmarkSubprocess subprocess;
    subprocess.process_ =
        spawn(std::move(command), std::move(environment), in[0], out[1], is_quiet);
    close(in[0]);
    close(out[1]);
    subprocess.to_ = fdopen(in[1], "w");
    subprocess.from_ = fdopen(out[0], "r");
    const std::string line = subprocess.read_line();
    if (!line.starts_with("# "))
        return std::nullopt;
    subprocess.greeting_ = line.substr(2);
    return subprocess;
}

BenchmarkSubprocess::BenchmarkSubprocess(BenchmarkSubprocess&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      to_(std::exchange(other.to_, nullptr)),
      from_(std::exchange(other.from_, nullptr)),
      greeting_(std::move(other.greeting_)) {}

BenchmarkSubprocess::~BenchmarkSubprocess() {
    if (to_ != nullptr)
        std::fclose(to_);  // it ends when there is nothing more to read
    if (process_ > 0 && !answers_within(5000))
        kill(process_, SIGKILL);
    if (from_ != nullptr)
        std::fclose(from_);
    if (process_ > 0)
        waitpid(process_, nullptr, 0);
}

std::vector<double> BenchmarkSubprocess::run(int steps) {
    std::fprintf(to_, "run %d\n", steps);
    std::fflush(to_);
    std::istringstream answer(read_line());
    std::vector<double> numbers;
    for (double number; answer >> number;)
        numbers.push_back(number);
    if (numbers.empty() || !answer.eof())
        throw std::runtime_error("the process of " + greeting_ +
                                 " ended in the middle of the measurement");
    return numbers;
}

// Returns whether it has printed something, or has ended, before that time is over.
bool BenchmarkSubprocess::answers_within(int milliseconds) const {
    pollfd ready{fileno(from_), POLLIN, 0};
    return poll(&ready, 1, milliseconds) == 1;
}

std::string BenchmarkSubprocess::read_line() {
    if (!answers_within(longest_answer_ms))
        throw std::runtime_error("a process that measures has said nothing for ten minutes");
    std::string line;
    for (int c; (c = std::fgetc(from_)) != EOF && c != '\n';)
        line += static_cast<char>(c);
    return line;
}

std::vector<std::string> own_environment() {
    std::vector<std::string> all;
    for (char** entry = environ; *entry != nullptr; entry++)
        all.emplace_back(*entry);
    return all;
}

}  // namespace ddp
