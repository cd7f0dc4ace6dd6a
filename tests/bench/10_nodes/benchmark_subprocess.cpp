#include "tests/bench/10_nodes/benchmark_subprocess.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "05_ranks/coordinator/connection.hpp"
#include "common/report/process.hpp"

namespace ddp {
namespace {

constexpr int longest_answer_ms = 600'000;

// Adds up the proportional set sizes (man 5 proc_pid_smaps) of `process` and its descendants: a
// page that n processes share counts 1/n in each of them.
double proportional_bytes(pid_t process) {
    const std::string folder = "/proc/" + std::to_string(process);
    std::ifstream sizes(folder + "/smaps_rollup");
    double kibibytes = std::numeric_limits<double>::quiet_NaN();
    for (std::string word; sizes >> word && word != "Pss:";) {
    }
    sizes >> kibibytes;
    double bytes = kibibytes * 1024;
    std::ifstream children(folder + "/task/" + std::to_string(process) + "/children");
    for (pid_t child; children >> child;)
        bytes += proportional_bytes(child);
    return bytes;
}

}  // namespace

std::optional<BenchmarkSubprocess> BenchmarkSubprocess::start(
    const std::vector<std::string>& command, std::vector<std::string> environment, bool is_quiet) {
    std::array<Descriptor, 2> in = make_pipe(), out = make_pipe();
    BenchmarkSubprocess subprocess;
    subprocess.process_ = start_process(command, {.environment = std::move(environment),
                                                  .input = in[0].number(),
                                                  .output = out[1].number(),
                                                  .error = is_quiet ? -1 : STDERR_FILENO});
    // These ends are its alone now: once it has ended, there is nothing more to read.
    in[0] = Descriptor();
    out[1] = Descriptor();
    subprocess.to_ = fdopen(in[1].release(), "w");
    subprocess.from_ = fdopen(out[0].release(), "r");
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

std::vector<double> BenchmarkSubprocess::ask(const std::string& line) {
    std::fprintf(to_, "%s\n", line.c_str());
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

double BenchmarkSubprocess::memory_bytes() const {
    return proportional_bytes(process_);
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

}  // namespace ddp
