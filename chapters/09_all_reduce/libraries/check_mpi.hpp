#pragma once
// Checks of what MPI's functions return.
#include <mpi.h>

#include <stdexcept>
#include <string>

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

}  // namespace ddp
