#pragma once
// A communicator of MPI for one user: MPI never mixes up its messages with those of another.
#include <mpi.h>

#include <stdexcept>
#include <string>

#include "05_ranks/rank.hpp"
#include "09_all_reduce/support/group.hpp"

namespace ddp {

// Throws with MPI's own words unless `error` is MPI_SUCCESS; `what` names what was tried.
inline void check_mpi(int error, const std::string& what) {
    if (error == MPI_SUCCESS)
        return;
    char reason[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(error, reason, &length);
    throw std::runtime_error("MPI failed in " + what + ": " + reason);
}

// Returns a new communicator of all ranks. All of them must call it. Unlike MPI_Comm_dup, it does
// not wait for a rank that is lost or stopped forever: it throws RunFailed, or std::runtime_error
// after the job's time-out.
MPI_Comm duplicate_world(Rank& rank);

// Returns a new communicator of the ranks of `group`, in which MPI's ranks are their indices. All
// ranks of the job call it together, each with the group that it is in.
MPI_Comm communicator_of(Rank& rank, const Group& group);

}  // namespace ddp
