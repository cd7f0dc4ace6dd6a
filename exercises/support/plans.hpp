#pragma once
// Follows a plan of messages: whose summands each rank has at its end, what leaves the nodes, and
// how long it takes by 21_cluster's simulator.
#include <optional>
#include <string>
#include <vector>

#include "21_cluster/simulated_all_reduce.hpp"
#include "exercises/message_plan.hpp"

namespace ddp::test {

// The node of each rank, by rank.
using NodeOf = std::vector<int>;
NodeOf node_after_node(const std::vector<int>& ranks_on_node);

// "nodes of 3, 1 and 2 ranks"
std::string nodes_text(const std::vector<int>& ranks_on_node);

// Throws Wrong if a message names a rank or a chunk that is not there, or if it replaces a chunk to
// which another message of the round comes as well.
void check_plan(const MessagePlan& plan, int ranks);

// Summands of rank `of` that are in chunk `chunk` of rank `rank` at the end, but not once.
struct WrongSum {
    int rank, chunk, of, times;
    std::string text() const;
};
// Returns the first of them, if there is any: of a rank that is missing, if one is.
std::optional<WrongSum> wrong_sum(const MessagePlan& plan, int ranks);

// The messages that each node sends to other nodes, and the shares of the array in them.
struct Sent {
    std::vector<int> messages;
    std::vector<double> shares;
};
Sent sent_by(const MessagePlan& plan, const NodeOf& node_of);

// Returns the seconds of the plan for an array of `bytes` bytes.
double seconds_of(const MessagePlan& plan, const simulator::Cluster& cluster, double bytes);

// Returns nodes whose ranks have a port each, and in which nothing takes time.
simulator::Cluster nodes_with_ports(int nodes, int ranks_per_node, double alpha_s,
                                    double bytes_per_second);

// Returns 09_all_reduce's ring of all ranks.
MessagePlan ring_plan(int ranks);

// Returns 21_cluster's two levels, with a ring along each rail.
MessagePlan rail_ring_plan(int nodes, int ranks_per_node);

}  // namespace ddp::test
