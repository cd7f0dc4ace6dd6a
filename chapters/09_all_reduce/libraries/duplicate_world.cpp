#if defined(DDP_MPI)
#include "09_all_reduce/libraries/duplicate_world.hpp"

#include <chrono>
#include <thread>

#include "common/report/bench.hpp"
#include "common/report/units.hpp"

namespace ddp {

MPI_Comm duplicate_world(Rank& rank) {
    rank.barrier();  // the time-out begins when all are here
    MPI_Comm ranks = MPI_COMM_NULL;
    MPI_Request request;
    check_mpi(MPI_Comm_idup(MPI_COMM_WORLD, &ranks, &request), "MPI_Comm_idup");
    const double limit_s = rank.job().timeout_s;
    for (const Stopwatch waited;;) {
        int is_done = 0;
        check_mpi(MPI_Test(&request, &is_done, MPI_STATUS_IGNORE), "MPI_Comm_idup");
        if (is_done != 0)
            return ranks;
        rank.check();
        if (limit_s > 0 && waited.seconds() > limit_s)
            throw std::runtime_error("waited " + format_fixed(limit_s, 1) +
                                     " s for MPI in MPI_Comm_idup, to which all have come");
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

MPI_Comm communicator_of(Rank& rank, const Group& group) {
    agreed_group(rank, group);
    MPI_Comm all = duplicate_world(rank), members = MPI_COMM_NULL;
    if (group.ranks() == Group::all(rank.job()).ranks())  // on every rank, or on none
        return all;
    check_mpi(MPI_Comm_split(all, group.rank(0), group.index_of(rank.rank()), &members),
              "MPI_Comm_split");
    MPI_Comm_free(&all);
    return members;
}

}  // namespace ddp
#endif
