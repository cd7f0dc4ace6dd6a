#pragma once
// For programs that start ranks by mpirun themselves.
#include <string>

namespace ddp {

// Returns whether a program of this name is in one of the folders of PATH.
bool is_on_path(const std::string& program);

// Let this user start mpirun from this process, also if it is root; and let mpirun print nothing
// but what the ranks print, also where a job has failed. (For the second there is no option:
// mpirun -q, up to Open MPI 4, is a mistake in Open MPI 5.) Variables that the user has set are
// kept.
void allow_mpirun();
void keep_mpirun_quiet();

}  // namespace ddp
