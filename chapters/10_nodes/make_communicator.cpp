#include "10_nodes/make_communicator.hpp"

namespace ddp {
namespace {

std::unique_ptr<Communicator> make_native(Rank& rank, std::size_t arena_bytes,
                                          const NodeOptions& options) {
    if (rank.job().has_several_nodes())
        return make_nodes_communicator(rank, arena_bytes, make_socket_transport(rank), options);
    if (options.order.shape)
        return make_nodes_communicator(rank, arena_bytes, nullptr, options);
    return make_native_communicator(rank, arena_bytes,
                                    {.group = options.group, .timeout_s = options.timeout_s});
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(const std::string& kind, Rank& rank,
                                                std::size_t arena_bytes,
                                                const NodeOptions& options) {
    if (kind == "native")
        return make_native(rank, arena_bytes, options);
    if (kind == "mpi")
        return make_mpi_communicator(rank, arena_bytes, options.group);
    if (kind == "nccl")
        return make_nccl_communicator(rank, arena_bytes, options.group);
    throw OptionError("There is no communicator '" + kind + "'; there are native, mpi and nccl.");
}

}  // namespace ddp
