#pragma once
// The Communicator over this book's own collectives, for ranks on several hosts.
#include <cstddef>
#include <memory>
#include <optional>

#include "09_all_reduce/communicator.hpp"
#include "09_all_reduce/hosts/transport.hpp"

namespace ddp {

// Makes that communicator; all ranks call it together. `transport` reaches the ranks of other
// hosts. `timeout_s` limits every wait of a kernel, the job's unless given. Throws OptionError for
// a simulated link.
std::unique_ptr<Communicator> make_hosts_communicator(
    Rank& rank, std::size_t arena_bytes, std::unique_ptr<Transport> transport,
    std::optional<double> timeout_s = std::nullopt);

}  // namespace ddp
