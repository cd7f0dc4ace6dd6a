#include "03_network/pytorch.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

namespace ddp {
namespace {

namespace fs = std::filesystem;

// The script, looked for from this program upwards: build/cpu/bin/bench_train is in the book.
std::optional<fs::path> find_script() {
    std::error_code error;
    for (fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
         folder != folder.root_path(); folder = folder.parent_path()) {
        const fs::path script = folder / "tests/golden/pytorch_train.py";
        if (fs::exists(script, error))
            return script;
    }
    return std::nullopt;
}

// This process's environment with one thread a rank: OpenBLAS reads it when it is loaded. What
// ./book chose for our own OpenBLAS is not handed on: PyTorch is measured as it is installed.
std::vector<std::string> environment_of_one_thread() {
    std::vector<std::string> all{"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1"};
    for (char** entry = environ; *entry != nullptr; entry++) {
        const std::string_view text(*entry);
        if (!text.starts_with("OPENBLAS_") && !text.starts_with("OMP_NUM_THREADS="))
            all.emplace_back(text);
    }
    return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts)
        pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

// Starts `command` with these ends of pipes as stdin and stdout. Its stderr goes nowhere: that
// PyTorch is missing there matters only if it is missing everywhere. -1 if it cannot be started.
pid_t spawn(std::vector<std::string> command, int in, int out) {
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    std::vector<std::string> environment = environment_of_one_thread();
    pid_t process = -1;
    const int error = posix_spawnp(&process, command[0].c_str(), &files, nullptr,
                                   pointers_to(command).data(), pointers_to(environment).data());
    posix_spawn_file_actions_destroy(&files);
    return error == 0 ? process : -1;
}

}  // namespace

std::optional<Pytorch> Pytorch::find(const std::string& model, int batch) {
    for (const char* python : {"python3", "/usr/bin/python3"}) {
        Pytorch pytorch;
        if (pytorch.start(python, model, batch))
            return pytorch;
    }
    return std::nullopt;
}

bool Pytorch::start(const std::string& python, const std::string& model, int batch) {
    const std::optional<fs::path> script = find_script();
    std::array<int, 2> in{}, out{};
    if (!script || pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0)
        return false;
    process_ = spawn(
        {python, script->string(), "--rounds", "--model", model, "--batch", std::to_string(batch)},
        in[0], out[1]);
    close(in[0]);
    close(out[1]);
    to_ = fdopen(in[1], "w");
    from_ = fdopen(out[0], "r");
    version_ = read_line();
    if (!version_.starts_with("# "))
        return false;
    version_.erase(0, 2);
    return true;
}

Pytorch::Pytorch(Pytorch&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      to_(std::exchange(other.to_, nullptr)),
      from_(std::exchange(other.from_, nullptr)),
      version_(std::move(other.version_)) {}

// The end of its stdin ends the script.
Pytorch::~Pytorch() {
    if (to_ != nullptr)
        std::fclose(to_);
    if (from_ != nullptr)
        std::fclose(from_);
    if (process_ > 0)
        waitpid(process_, nullptr, 0);
}

double Pytorch::run(int steps) {
    std::fprintf(to_, "run %d\n", steps);
    std::fflush(to_);
    const std::string line = read_line();
    if (line.empty())
        throw std::runtime_error(
            "PyTorch's process ended in the middle of the measurement; "
            "go on without it: --pytorch off");
    return std::stod(line) / steps;
}

std::string Pytorch::read_line() {
    std::string line;
    for (int c; (c = std::fgetc(from_)) != EOF && c != '\n';)
        line += static_cast<char>(c);
    return line;
}

}  // namespace ddp
