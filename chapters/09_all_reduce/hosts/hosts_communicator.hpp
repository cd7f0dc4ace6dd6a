#pragma once
// The Communicator over this book's own collectives, for ranks on several hosts.
#include <cstddef>
#include <memory>
#include <optional>

#include "09_all_reduce/communicator.hpp"
#include "09_all_reduce/hosts/network/transport.hpp"

namespace ddp {

// Makes that communicator, over `group`; all ranks of the job call it together. `transport` reaches
// the ranks of other hosts; it may be null if there are none, which a --shape pretends. `timeout_s`
// limits every wait of a kernel, and `order` is that of an all-reduce's sums, which goes on two
// levels only if the hosts have the same number of ranks; both are the job's unless given. Throws
// OptionError for a simulated link, and for more ranks than most_ranks_over_hosts.
std::unique_ptr<Communicator> make_hosts_communicator(
    Rank& rank, std::size_t arena_bytes, std::unique_ptr<Transport> transport,
    std::optional<double> timeout_s = std::nullopt, std::optional<Group> group = std::nullopt,
    std::optional<AllReduceOrder> order = std::nullopt);

}  // namespace ddp
