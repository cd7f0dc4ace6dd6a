#pragma once
// The rendezvous: how processes that do not know each other find each other. Rank 0 listens at an
// address that all of them were given (MASTER_ADDR, MASTER_PORT). The others connect and introduce
// themselves, and when all have come, rank 0 sends the list to every rank. In PyTorch a TCPStore
// does this.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "05_ranks/coordinator/connection.hpp"
#include "05_ranks/job.hpp"

namespace ddp {

// Where a job's ranks find rank 0, and the word by which they recognise each other.
struct RendezvousEndpoint {
    std::vector<std::string> addresses;  // of rank 0's node, as names or numbers; one may be enough
    std::uint16_t port = 0;
    std::string job;  // no other job's process knows it, and no stranger that happens to connect

    std::string text() const;  // "node0:29500"
};

// Returns a random word that no other job has.
std::string new_job_name();

// The connections to the other ranks, by rank. Rank 0's own entry stays empty.
using Connections = std::vector<std::unique_ptr<Connection>>;

// Rank 0's side. Waits until ranks 1 to world_size - 1 have connected, refuses strangers, and sends
// the list of all ranks to each of them. `members`, whose entry 0 describes this process, is filled
// in. Throws std::runtime_error naming the ranks that did not come within `limit_s` (0: no limit).
Connections receive_ranks(const Descriptor& listener, const std::string& job,
                          std::vector<Member>& members, double limit_s);

// The other ranks' side. Connects, again and again until rank 0 listens, and fills in `members`,
// whose entry `rank` describes this process. Throws std::runtime_error if the job cannot be reached
// at `endpoint` within `limit_s` (0: no limit).
std::unique_ptr<Connection> join_ranks(const RendezvousEndpoint& endpoint, int rank,
                                       std::vector<Member>& members, double limit_s);

}  // namespace ddp
