#pragma once
// MPIs other than the one that this program is built with, for the comparison of all-reduces. Two
// of them cannot be in one program, so a small one, mpi_all_reduce.c, is compiled with each.
#include <string>
#include <vector>

#include "tests/bench/09_all_reduce/comparison.hpp"

namespace ddp {

class OtherMpi {
  public:
    // Compiles the program with the MPI in `prefix`, which has include/mpi.h, lib/libmpi.so and
    // bin/mpirun, and puts it beside this one; its name has `number`. Throws OptionError if that
    // fails.
    OtherMpi(const std::string& prefix, int number);

    // Returns what it calls itself, "MPICH 5.0.2".
    const std::string& name() const { return name_; }

    // Returns why so many ranks are not measured; "" if they are.
    std::string why_not(int ranks) const;

    // Runs a job of `ranks` ranks, which measures each of `sizes` (bytes) in `rounds` batches.
    std::vector<AllReduceMeasurement> measure(int ranks, const std::vector<std::size_t>& sizes,
                                              int rounds) const;

  private:
    std::string mpirun_, program_;
    std::vector<std::string> environment_;
    std::string name_;
};

}  // namespace ddp
