#pragma once
// The one door to the communicators: by their names, for ranks of one node or of several.
//
//     std::unique_ptr<Communicator> communicator = make_communicator("native", rank, bytes);
//
//     "native", all ranks on one node      the kernels of one node
//     "native", on several, or --shape     a ring between nodes, or two levels
//     "mpi", "nccl"                        the library, wherever the ranks are
#include <cstddef>
#include <memory>
#include <string>

#include "10_nodes/communicator/nodes_communicator.hpp"

namespace ddp {

// Makes a communicator of the kind "native" (this book's kernels), "mpi" or "nccl", with
// `arena_bytes` of device memory for allocate(). All ranks of the job call it together, each with
// the group that it is in; a rank that is in none gives itself. Throws OptionError, in a sentence,
// if that kind is not available here, and std::invalid_argument if the members of a group do not
// give the same.
std::unique_ptr<Communicator> make_communicator(const std::string& kind, Rank& rank,
                                                std::size_t arena_bytes,
                                                const NodeOptions& options = {});

}  // namespace ddp
