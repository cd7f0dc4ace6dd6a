#pragma once
// Where the ranks of a job are: their hosts, their cores, their GPUs, and the network between them.
// A wrong answer costs a factor, and no error message.
//
//     rank 0 ─ host a ─ core 0      rank 1 ─ host a ─ core 0      both wait for one core
//     host a ─ its name leads to eth0      its bytes left by docker0: another network
#include <cstdint>
#include <string>
#include <vector>

#include "05_ranks/rank.hpp"
#include "05_ranks/support/interfaces.hpp"
#include "10_nodes/communicator/node_order.hpp"
#include "common/report/csv.hpp"

namespace ddp {

// One rank, as it finds itself.
struct RankPlace {
    std::string host;
    std::string machine;     // hosts that are containers or namespaces may be on one
    std::vector<int> cores;  // on which it may run, in ascending order
    int cores_of_machine = 1;
    std::string device;
};

// Returns this process's own cores and machine. To be called before any rank is bound to a core by
// this book's World: what counts is what the launcher has given.
RankPlace place_of_process();

// Returns core numbers as people write them: "0-3,8".
std::string text_of_cores(const std::vector<int>& cores);

// Returns a sentence about the first two ranks that are bound to the same core, although their
// machine has others, and what to do; "" if there are none.
std::string shared_core(const std::vector<RankPlace>& places);

// A host, and what its interfaces have sent in one all-reduce.
struct HostNetwork {
    std::string host;
    std::string address;        // that its name has on another host; empty: none
    std::string interface;      // that has this address; empty: none
    std::uint64_t sent = 0;     // by that interface
    Traffic most;               // by the one that has sent most
    double expected_bytes = 0;  // that must have left the host
};

// Returns a sentence about a host whose bytes went over another network than the one that its name
// leads to, or over none that the kernel counts; "" if all is well.
std::string wrong_network(const HostNetwork& network);

// Finds the places of all ranks, by rank; `mine` is this process's. All ranks call it together.
std::vector<RankPlace> gather_places(Rank& rank, RankPlace mine);

// Makes a small all-reduce in this order, and asks the interfaces: one entry for each host, none if
// there is only one. All ranks call it together, and all get the same.
std::vector<HostNetwork> watch_network(Rank& rank, const AllReduceOrder& order);

// Prints both, writes a row for each rank to `file`, and returns whether no two ranks share a core.
std::vector<std::string> where_columns();
bool report_where(const Job& job, const std::vector<RankPlace>& places,
                  const std::vector<HostNetwork>& networks, CsvWriter& file);

}  // namespace ddp
