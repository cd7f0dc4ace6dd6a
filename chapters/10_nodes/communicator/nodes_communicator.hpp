#pragma once
// The Communicator over this book's own collectives, for ranks on several nodes.
#include <cstddef>
#include <memory>
#include <optional>

#include "09_all_reduce/communicator.hpp"
#include "10_nodes/communicator/node_order.hpp"
#include "10_nodes/network/transport.hpp"

namespace ddp {

// The choices of a communicator, where they are not the usual ones.
struct NodeOptions {
    std::optional<Group> group = std::nullopt;       // all ranks unless given
    std::optional<double> timeout_s = std::nullopt;  // of every wait of a kernel; or the job's
    AllReduceOrder order = {};                       // of an all-reduce's sums
};

// Makes that communicator; all ranks of the job call it together. `transport` reaches the ranks of
// other nodes; it may be null if there are none, which a --shape pretends. An all-reduce goes on
// two levels only if the nodes have the same number of ranks. Throws OptionError for a simulated
// link, and for more ranks than max_ranks_over_nodes.
std::unique_ptr<Communicator> make_nodes_communicator(Rank& rank, std::size_t arena_bytes,
                                                      std::unique_ptr<Transport> transport,
                                                      const NodeOptions& options = {});

}  // namespace ddp
