// A rank inside of a program that is not the book's.
#include "05_ranks/coordinator/endpoints.hpp"
#include "05_ranks/support/mpi_start.hpp"
#include "05_ranks/world.hpp"

namespace ddp {

World::World(int rank, int world_size, double timeout_s, const Broadcast& broadcast) {
    job_.timeout_s = timeout_s;
    job_.is_guest = true;
    job_.started_by = "another program";
    become_process(rank, world_size);
    find_others_by_broadcast(broadcast);
}

}  // namespace ddp
