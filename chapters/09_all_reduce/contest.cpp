#include "09_all_reduce/contest.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <stdexcept>

namespace ddp {
namespace {

bool is_on_path(const std::string& program) {
    const char* path = std::getenv("PATH");
    std::istringstream folders(path == nullptr ? "" : path);
    for (std::string folder; std::getline(folders, folder, ':');)
        if (access((folder + "/" + program).c_str(), X_OK) == 0)
            return true;
    return false;
}

}  // namespace

std::vector<JobKind> mpi_jobs(int ranks) {
    if (!is_built_with_mpi() || !is_on_path("mpirun"))
        return {};
    if (geteuid() == 0) {  // Open MPI wants to be told twice
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    }
    const std::vector<std::string> shipped{"mpirun", "-q", "--oversubscribe", "-n",
                                           std::to_string(ranks)};
    std::vector<std::string> tuned = shipped;
    for (const char* word : {"--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"})
        tuned.push_back(word);
    return {{"mpi", shipped, {}}, {"mpi_tuned", tuned, {}}};
}

int run_job(const std::vector<std::string>& command) {
    std::vector<char*> words;
    for (const std::string& word : command)
        words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        execvp(words[0], words.data());
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        throw std::runtime_error("cannot start " + command[0] + ": " + std::strerror(errno));
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void write_samples(const std::filesystem::path& path, const std::vector<Sample>& samples) {
    CsvWriter file(path, {"algorithm", "bytes", "wrong", "of", "seconds"});
    for (const Sample& sample : samples) {
        const auto add = [&](const char* of, const std::vector<double>& all) {
            for (const double seconds : all)
                file.row({sample.algorithm, sample.bytes, sample.wrong, of, seconds});
        };
        add("batch", sample.batches);
        add("sum", sample.sums);
    }
}

std::vector<Sample> read_samples(const std::filesystem::path& path) {
    const Csv file = read_csv(path);
    std::vector<Sample> samples;
    for (std::size_t row = 0; row < file.rows.size(); row++) {
        const std::string& algorithm = file.text(row, "algorithm");
        const auto bytes = static_cast<std::size_t>(file.number(row, "bytes"));
        if (samples.empty() || samples.back().algorithm != algorithm ||
            samples.back().bytes != bytes)
            samples.push_back({algorithm, bytes, {}, {}, 0});
        Sample& sample = samples.back();
        sample.wrong = static_cast<std::size_t>(file.number(row, "wrong"));
        std::vector<double>& seconds =
            file.text(row, "of") == "batch" ? sample.batches : sample.sums;
        seconds.push_back(file.number(row, "seconds"));
    }
    return samples;
}

void add_samples(std::vector<Sample>& samples, const std::vector<Sample>& more) {
    if (samples.empty()) {
        samples = more;
        return;
    }
    for (std::size_t i = 0; i < more.size(); i++) {
        Sample& sample = samples.at(i);
        if (sample.algorithm != more[i].algorithm || sample.bytes != more[i].bytes)
            throw std::logic_error("two jobs of one kind have measured different things");
        sample.batches.insert(sample.batches.end(), more[i].batches.begin(), more[i].batches.end());
        sample.sums.insert(sample.sums.end(), more[i].sums.begin(), more[i].sums.end());
        sample.wrong += more[i].wrong;
    }
}

}  // namespace ddp
