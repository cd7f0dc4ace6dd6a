#pragma once
// A comparison of all-reduces by several jobs that take turns, and what comes out of it.
#include <filesystem>
#include <string>
#include <vector>

#include "05_ranks/coordinator/connection.hpp"
#include "common/report/csv.hpp"
#include "common/report/process.hpp"
#include "tests/bench/09_all_reduce/candidates.hpp"

namespace ddp {

// The measurements of jobs with the same MPI and the same settings of mpirun. MPI is fast with
// other settings than the shipped ones, so there are two kinds of jobs of the MPI that this program
// is built with. All other candidates take part in both. Beside another MPI's job the subject runs
// in a job of its own.
struct MpiVariant {
    std::string mpi_name;  // what MPI is called there, "mpi", "mpi_tuned", "MPICH 5.0.2"
    std::vector<std::string> command;  // before the program: mpirun and its options
    std::vector<AllReduceMeasurement> measurements;
};

// mpirun as shipped and tuned, for `ranks` ranks; none where there is no mpirun or no MPI in this
// program.
std::vector<MpiVariant> mpi_variants(int ranks);

// Runs `command` until it ends, with these variables ("NAME=value"); returns its exit status, or
// 128 and the number of the signal that ended it. Throws std::runtime_error if it cannot be
// started.
int run_job(const std::vector<std::string>& command,
            std::vector<std::string> environment = environment_with({}));

// A file without a name in any folder: it is gone with this process, however that ends.
class NamelessFile {
  public:
    NamelessFile();
    std::filesystem::path path() const;  // by which this process and others open it

  private:
    const Descriptor descriptor_;
};

// Files by which a job tells whoever has started it.
void write_measurements(const std::filesystem::path& path,
                        const std::vector<AllReduceMeasurement>& measurements);
std::vector<AllReduceMeasurement> read_measurements(const std::filesystem::path& path);

// Adds what a further job has measured to what others of its kind have.
void add_measurements(std::vector<AllReduceMeasurement>& measurements,
                      const std::vector<AllReduceMeasurement>& more);

// Prints what `kinds` have measured on `ranks` ranks, `algorithm` beside MPI and the limit, which
// `limit` explains, and writes rows to `file`, whose header is comparison_columns().
void report_comparison(int ranks, const std::string& limit, const std::vector<MpiVariant>& kinds,
                       const std::string& algorithm, CsvWriter& file);
std::vector<std::string> comparison_columns();

}  // namespace ddp
