#include "05_ranks/support/mpi_start.hpp"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

namespace ddp {

bool is_on_path(const std::string& program) {
    const char* path = std::getenv("PATH");
    std::istringstream folders(path == nullptr ? "" : path);
    for (std::string folder; std::getline(folders, folder, ':');)
        if (access((folder + "/" + program).c_str(), X_OK) == 0)
            return true;
    return false;
}

void allow_mpirun() {
    if (geteuid() == 0)  // Open MPI wants to be told twice
        for (const char* allowed :
             {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",  // ... and so does 5
              "PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"})
            setenv(allowed, "1", 0);
}

void keep_mpirun_quiet() {
    for (const char* quiet : {"OMPI_MCA_orte_execute_quiet", "PRTE_MCA_prte_execute_quiet"})
        setenv(quiet, "1", 0);
}

}  // namespace ddp
