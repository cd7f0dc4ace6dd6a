#pragma once
// Finds out why the ranks of other nodes do not answer, before the ranks have met. MPI cannot tell:
// its network is what fails. But the launcher has one of its own, over which a rank of each node
// tells the others what it knows:
//
//     node0   eth0 10.77.0.1   docker0 172.17.0.1        the same address on both nodes: what is
//     node1   eth0 10.77.0.2   docker0 172.17.0.1        sent there comes back to its sender
#include <cstdint>
#include <string>
#include <vector>

#include "05_ranks/support/interfaces.hpp"

namespace ddp {

// A node, as one of its ranks knows it.
struct NodeReport {
    struct Network {
        std::string interface, address;
        std::uint64_t sent = 0;  // bytes, since the wait has begun
    };

    int rank = 0;
    std::string node;
    std::string stopped;               // a rank of this node that is stopped; "": none
    std::vector<std::uint16_t> ports;  // at which this process listens
    std::vector<Network> networks;     // that have an address of IPv4, but for the loopback
};

// Returns the report of this process; `before` is what had been sent when the wait began.
NodeReport report_of_node(int rank, const std::string& stopped, const SentBytes& before);

// A report as one line of at most 1,000 bytes, and back. Interfaces for which there is no room are
// left out.
std::string line_of(const NodeReport& report);
NodeReport report_of_line(const std::string& line);

// A port of another node at which this node cannot connect; 0: none.
struct ClosedPort {
    std::string node, address;
    std::uint16_t port = 0;
};

// The answers of the other nodes, and whether they let this one connect.
struct Silence {
    NodeReport own;
    std::vector<NodeReport> others;  // one for each node, by rank
    ClosedPort closed;
};

// Reads the lines of other ranks, and tries whether their nodes let this one connect.
Silence silence_of(const NodeReport& own, const std::vector<std::string>& lines);

// Returns what follows "rank 0 waited 10.1 s in MPI_Bcast for ": who has not answered, by which
// interfaces, and what to do about it.
std::string to_string(const Silence& silence);

}  // namespace ddp
