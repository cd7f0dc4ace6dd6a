#pragma once
// The rendezvous: how processes that do not know each other find each other. Rank 0 listens at an
// address that all of them were given (MASTER_ADDR, MASTER_PORT). The others connect and introduce
// themselves, and when all have come, rank 0 sends the list to every rank. In PyTorch a TCPStore
// does this.
#include <cstdint>
#include <functional>
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

// The connections to the other ranks, by rank. Rank 0's own entry stays empty.
using Connections = std::vector<std::unique_ptr<Connection>>;

// Rank 0's side. It keeps the port for as long as the job runs: a process that comes later would
// otherwise wait there for the next job, and become a rank of that.
class Reception {
  public:
    Reception(Descriptor listener, std::string job);

    // Waits until ranks 1 to world_size - 1 have connected, refuses strangers, and sends the list
    // of all ranks to each of them. `members`, whose entry 0 describes this process, is filled in.
    // Throws std::runtime_error naming the ranks that did not come within `limit_s` (0: no limit).
    Connections receive_ranks(std::vector<Member>& members, double limit_s);

    // Refuses those who have called since. `is_here` says whether a rank is still connected, and
    // was when they called.
    void refuse_callers(const std::vector<Member>& members,
                        const std::function<bool(std::size_t rank)>& is_here);

  private:
    using Caller = std::unique_ptr<Connection>;
    using Admit = std::function<void(std::size_t rank, const Member& member, Caller& caller)>;
    void answer_callers(std::size_t world_size, const Admit& admit);

    Descriptor listener_;
    std::string job_;
    std::vector<Caller> callers_;  // connected, but not known by rank yet
};

// The other ranks' side. Connects, again and again until rank 0 listens, and fills in `members`,
// whose entry `rank` describes this process. Throws std::runtime_error if the job cannot be reached
// at `endpoint` within `limit_s` (0: no limit).
std::unique_ptr<Connection> join_ranks(const RendezvousEndpoint& endpoint, int rank,
                                       std::vector<Member>& members, double limit_s);

}  // namespace ddp
