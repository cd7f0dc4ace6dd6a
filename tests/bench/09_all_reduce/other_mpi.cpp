#include "tests/bench/09_all_reduce/other_mpi.hpp"

#include <cstdlib>
#include <fstream>
#include <regex>

#include "05_ranks/cores.hpp"
#include "05_ranks/support/mpi_start.hpp"
#include "common/report/options.hpp"
#include "common/report/process.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

namespace fs = std::filesystem;

// Shortens a version: "MPICH 5.0.2" of "MPICH Version:      5.0.2\n...", "Open MPI 5.0.11" of "Open
// MPI v5.0.11, package: ...", "Intel MPI 2021.18.1" of "Intel(R) MPI Library 2021.18.1 for ...".
std::string name_of(const std::string& version) {
    std::smatch parts;
    if (!std::regex_search(version, parts,
                           std::regex("(MPICH|Open MPI|Intel)[^0-9]*([0-9][0-9.]*)")))
        return version.substr(0, version.find('\n'));
    return (parts[1] == "Intel" ? "Intel MPI" : parts[1].str()) + " " + parts[2].str();
}

}  // namespace

// Intel's must be told where it is.
OtherMpi::OtherMpi(const std::string& prefix, int number)
    : mpirun_(prefix + "/bin/mpirun"),
      program_(fs::read_symlink("/proc/self/exe").parent_path() /
               ("mpi_all_reduce_" + std::to_string(number))),
      environment_(environment_with(
          {"PATH=" + prefix + "/bin:" + std::getenv("PATH"), "I_MPI_ROOT=" + prefix})) {
    const char* compiler = std::getenv("CC");
    const std::vector<std::string> compile{
        compiler != nullptr ? compiler : "cc",
        "-O2",
        "-std=c11",
        find_in_book("tests/bench/09_all_reduce/mpi_all_reduce.c").value_or("mpi_all_reduce.c"),
        "-I" + prefix + "/include",
        "-L" + prefix + "/lib",
        "-lmpi",
        "-Wl,-rpath," + prefix + "/lib",
        "-o",
        program_};
    if (!fs::exists(mpirun_) || run_job(compile) != 0)
        throw OptionError("--mpi " + prefix +
                          ": no program can be made with it. It must be a folder that has "
                          "include/mpi.h, lib/libmpi.so and bin/mpirun, such as build/mpis/mpich, "
                          "which ./book setup mpis fetches.");
    const NamelessFile version;
    const std::string command = "'" + program_ + "' > " + version.path().string();
    if (run_job({"sh", "-c", command}, environment_) != 0)
        throw OptionError("--mpi " + prefix + ": the program made with it does not start.");
    std::ifstream text(version.path());
    name_ = name_of({std::istreambuf_iterator<char>(text), {}});
}

std::string OtherMpi::why_not(int ranks) const {
    if (!name_.starts_with("MPICH") || ranks <= usable_cores())
        return "";
    return "its ranks never give a core away while they wait, and would take minutes to share " +
           format_count(usable_cores(), "core");
}

// With more ranks than cores, a rank that waits must let the others run.
std::vector<AllReduceMeasurement> OtherMpi::measure(int ranks,
                                                    const std::vector<std::size_t>& sizes,
                                                    int rounds) const {
    std::vector<std::string> command{mpirun_, "-n", std::to_string(ranks)},
        environment = environment_;
    if (name_.starts_with("Open MPI"))
        command.push_back("--oversubscribe");
    if (ranks > usable_cores()) {
        environment.push_back("I_MPI_THREAD_YIELD=3");  // sched_yield, Intel
        environment.push_back("OMPI_MCA_mpi_yield_when_idle=1");
    }
    const NamelessFile file;
    command.insert(command.end(), {program_, file.path(), std::to_string(rounds)});
    for (const std::size_t bytes : sizes)
        command.push_back(std::to_string(bytes));
    if (const int status = run_job(command, environment); status != 0)
        throw std::runtime_error("a job of " + name_ + " has ended with status " +
                                 std::to_string(status) + ": what it has said stands above");
    return read_measurements(file.path());
}

}  // namespace ddp
