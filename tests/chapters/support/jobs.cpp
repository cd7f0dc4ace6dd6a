#include "tests/chapters/support/jobs.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <thread>

#include "05_ranks/support/mpi_start.hpp"
#include "06_messages/support/shared_device.hpp"
#include "tests/common/report/temporary_folder.hpp"

namespace ddp::test {
namespace {

// Returns whether this user owns it: another user of this machine may run the same tests.
bool is_mine(const std::filesystem::path& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && status.st_uid == geteuid();
}

int processes_of(const std::string& program) {
    int running = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        std::ifstream file(entry.path() / "cmdline");
        std::string command;
        std::getline(file, command, '\0');
        running += command == program && is_mine(entry.path());
    }
    return running;
}

}  // namespace

bool has_mpirun() {
#if defined(DDP_MPI)
    return is_on_path("mpirun");
#else
    return false;
#endif
}

bool processes_can_run_kernels(int processes) {
    int gpus = 0;
    if (kernels_run_on_cpu || has_mps(mps_folder()) ||
        (cudaGetDeviceCount(&gpus) == cudaSuccess && gpus >= processes))
        return true;
    std::cout << "SKIPPED: " << processes << " processes need a GPU each, or NVIDIA's MPS"
              << std::endl;
    return false;
}

std::vector<Launch> launches(const std::string& program, int ranks) {
    std::vector<Launch> all{{"launcher", {program}, {"--processes", std::to_string(ranks)}}};
    if (has_mpirun())
        all.push_back(
            {"mpirun", {"mpirun", "--oversubscribe", "-n", std::to_string(ranks), program}, {}});
    return all;
}

std::vector<Launch> launches_with_kernels(const std::string& program, int ranks) {
    return processes_can_run_kernels(ranks) ? launches(program, ranks) : std::vector<Launch>{};
}

ChildResult start(const Launch& launch, const Words& words, int timeout_s,
                  const Words& environment) {
    allow_mpirun();
    keep_mpirun_quiet();
    // Jobs of Open MPI 4 share a folder, which each makes at its beginning and removes at its end,
    // if it is empty: where another one begins just then, that fails. So tests share none.
    static const TemporaryFolder folder;
    const Words own{"OMPI_MCA_orte_tmpdir_base=" + (folder / "").string()};
    return run_command(launch.before + launch.after + words, own + environment, timeout_s);
}

ProgramRun run_job(const Launch& launch, const Words& words) {
    return ProgramRun(start(launch, words));
}

std::string plain(const std::string& text) {
    std::string ours =
        std::regex_replace(text, std::regex("(^|\n)-{70,}\nprterun (?:[^\n]*\n)*?-{70,}\n"), "$1");
    ours = std::regex_replace(ours, std::regex("\\[[^\\]\n]*\\] PMIX ERROR: [^\n]*\n"), "");
    return std::regex_replace(ours, std::regex(" \\(process [0-9]+ on [^)]*\\)"), "");
}

bool nothing_is_left(const std::string& program) {
    for (int i = 0; i < 50 && processes_of(program) > 0; i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return processes_of(program) == 0;
}

std::set<std::string> shared_memory() {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
        if (const std::string name = entry.path().filename();
            !name.starts_with("vader_segment") && !name.starts_with("sm_segment") &&
            !name.starts_with("open_mpi.") && is_mine(entry.path()))
            names.insert(entry.path());
    return names;
}

}  // namespace ddp::test
