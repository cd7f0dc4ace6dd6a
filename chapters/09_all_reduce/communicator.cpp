#include "09_all_reduce/communicator.hpp"

#include <stdexcept>

namespace ddp {

void Communicator::require_rank(int rank, const std::string& what) const {
    if (rank < 0 || rank >= world_size())
        throw std::invalid_argument(what + " rank " + std::to_string(rank) +
                                    ": the ranks are 0 to " + std::to_string(world_size() - 1));
}

std::unique_ptr<Communicator> make_communicator(const std::string& kind, Rank& rank,
                                                std::size_t arena_bytes) {
    if (kind == "native")
        return make_native_communicator(rank, arena_bytes);
    if (kind == "mpi")
        return make_mpi_communicator(rank, arena_bytes);
    if (kind == "nccl")
        return make_nccl_communicator(rank, arena_bytes);
    throw OptionError("There is no communicator '" + kind + "'; there are own, mpi and nccl.");
}

}  // namespace ddp
