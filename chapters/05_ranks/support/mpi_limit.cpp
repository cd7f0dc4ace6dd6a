#include "05_ranks/support/mpi_limit.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "common/report/units.hpp"

namespace ddp {
namespace {

using namespace std::chrono_literals;

// Returns "" for what cannot be read: a process may end at any time.
std::string bytes_of_file(const std::filesystem::path& path) {
    std::ostringstream bytes;
    bytes << std::ifstream(path).rdbuf();
    return bytes.str();
}

// Returns the rank that mpirun or srun has given a process, from its environment.
std::string rank_of(const std::filesystem::path& process) {
    std::istringstream variables(bytes_of_file(process / "environ"));
    for (std::string variable; std::getline(variables, variable, '\0');)
        for (const std::string name : {"OMPI_COMM_WORLD_RANK=", "PMIX_RANK="})
            if (variable.starts_with(name))
                return variable.substr(name.size());
    return "?";
}

}  // namespace

std::string find_stopped_rank() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        // "4711 (name of the program) T 4700 ...": its state, and its parent
        const std::string status = bytes_of_file(entry.path() / "stat");
        char state = 0;
        pid_t parent = 0;
        std::istringstream(status.substr(std::min(status.size(), status.rfind(')') + 1))) >>
            state >> parent;
        if (state == 'T' && parent == getppid())
            return "rank " + rank_of(entry.path()) + " (process " +
                   entry.path().filename().string() + ")";
    }
    return "";
}

MpiLimit::MpiLimit(std::string call, double limit_s, double longest_s) {
    if (limit_s > 0)
        thread_ = std::thread([this, call = std::move(call), limit_s, longest_s] {
            watch(call, limit_s, longest_s);
        });
}

MpiLimit::~MpiLimit() {
    {
        const std::lock_guard lock(mutex_);
        is_over_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable())
        thread_.join();
}

void MpiLimit::watch(const std::string& call, double limit_s, double longest_s) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string own = rank_of("/proc/self");
    // All ranks wait: the first to end is the only one to speak, since mpirun then ends the others.
    const double turn_s = 0.1 * std::min(std::atoi(own.c_str()), 20);
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, 100ms, [this] { return is_over_; })) {
        const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
        if (waited.count() < limit_s + turn_s)
            continue;
        const std::string stopped = find_stopped_rank();
        if (stopped.empty() && waited.count() < longest_s + turn_s)
            continue;
        std::cerr << "error: rank " + own + " waited " + format_fixed(waited.count(), 1) +
                         " s in " + call + " for " +
                         (stopped.empty() ? "the other ranks: were all of them started?"
                                          : stopped + ", which is stopped") +
                         "\n"
                  << std::flush;
        std::_Exit(1);
    }
}

}  // namespace ddp
