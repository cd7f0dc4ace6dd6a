#include "tests/bench/09_all_reduce/comparison.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "05_ranks/support/mpi_start.hpp"

namespace ddp {

std::vector<MpiVariant> mpi_variants(int ranks) {
    if (!is_built_with_mpi() || !is_on_path("mpirun"))
        return {};
    allow_mpirun();
    keep_mpirun_quiet();
    const std::vector<std::string> shipped{"mpirun", "--oversubscribe", "-n",
                                           std::to_string(ranks)};
    std::vector<std::string> tuned = shipped;
    for (const char* word : {"--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"})
        tuned.push_back(word);
    return {{"mpi", shipped, {}}, {"mpi_tuned", tuned, {}}};
}

int run_job(const std::vector<std::string>& command, std::vector<std::string> environment) {
    // A bench that is killed takes its job with it.
    const pid_t process =
        start_process(command, {.environment = std::move(environment), .signal_at_end = SIGTERM});
    int status = 0;
    if (waitpid(process, &status, 0) != process)
        throw std::runtime_error("cannot wait for " + command[0] + ": " + std::strerror(errno));
    return exit_status(status);
}

NamelessFile::NamelessFile() : descriptor_(memfd_create("measurements", MFD_CLOEXEC)) {}

std::filesystem::path NamelessFile::path() const {
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(descriptor_.number());
}

void write_measurements(const std::filesystem::path& path,
                        const std::vector<AllReduceMeasurement>& measurements) {
    CsvWriter file(path, {"algorithm", "bytes", "wrong", "of", "seconds"});
    for (const AllReduceMeasurement& measurement : measurements) {
        const auto add = [&](const char* of, const std::vector<double>& all) {
            for (const double seconds : all)
                file.row(
                    {measurement.algorithm, measurement.bytes, measurement.wrong, of, seconds});
        };
        add("batch", measurement.batches);
        add("sum", measurement.sums);
    }
}

std::vector<AllReduceMeasurement> read_measurements(const std::filesystem::path& path) {
    const Csv file = read_csv(path);
    std::vector<AllReduceMeasurement> measurements;
    for (std::size_t row = 0; row < file.rows.size(); row++) {
        const std::string& algorithm = file.text(row, "algorithm");
        const auto bytes = static_cast<std::size_t>(file.number(row, "bytes"));
        if (measurements.empty() || measurements.back().algorithm != algorithm ||
            measurements.back().bytes != bytes)
            measurements.push_back({algorithm, bytes, {}, {}, 0});
        AllReduceMeasurement& measurement = measurements.back();
        measurement.wrong = static_cast<std::size_t>(file.number(row, "wrong"));
        std::vector<double>& seconds =
            file.text(row, "of") == "batch" ? measurement.batches : measurement.sums;
        seconds.push_back(file.number(row, "seconds"));
    }
    return measurements;
}

void add_measurements(std::vector<AllReduceMeasurement>& measurements,
                      const std::vector<AllReduceMeasurement>& more) {
    if (measurements.empty()) {
        measurements = more;
        return;
    }
    for (std::size_t i = 0; i < more.size(); i++) {
        AllReduceMeasurement& measurement = measurements.at(i);
        if (measurement.algorithm != more[i].algorithm || measurement.bytes != more[i].bytes)
            throw std::logic_error("two jobs of one kind have measured different things");
        measurement.batches.insert(measurement.batches.end(), more[i].batches.begin(),
                                   more[i].batches.end());
        measurement.sums.insert(measurement.sums.end(), more[i].sums.begin(), more[i].sums.end());
        measurement.wrong += more[i].wrong;
    }
}

}  // namespace ddp
