#pragma once
// The link between nodes, as the limit of an all-reduce there.
#include <memory>
#include <string>

#include "10_nodes/communicator/node_order.hpp"
#include "tests/bench/09_all_reduce/candidates.hpp"

namespace ddp {

// Makes a candidate by the name limit_name that sends what no all-reduce between nodes can do
// without: every node sends 2 (H - 1) / H of an array to the next one, all at once. Null where
// there is one node only, or no MPI. All ranks call it together.
std::shared_ptr<Candidate> make_link_limit(Rank& rank, std::size_t most);
// Returns these words for a reader.
std::string link_limit_text();

// Makes all that can be compared between nodes: the link, MPI, and this book's communicator, which
// sums in this order.
std::vector<std::shared_ptr<Candidate>> make_candidates_over_nodes(Rank& rank, std::size_t most,
                                                                   const AllReduceOrder& order);

}  // namespace ddp
