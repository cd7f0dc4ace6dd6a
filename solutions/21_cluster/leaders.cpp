// The exercise leaders: one rank of each node speaks for the others. Read
// exercises/21_cluster/README.md first.
#include "exercises/21_cluster/leaders.hpp"

#include <numeric>

namespace ddp {

MessagePlan leader_plan(const std::vector<int>& ranks_on_node) {
    // stub: leader_plan
    //: Which ranks are the leaders? Then the rounds: to the leaders, round their ring, and back.
    const int nodes = static_cast<int>(ranks_on_node.size());
    std::vector<int> leaders;
    std::vector<PlannedMessage> to_leaders, from_leaders;
    int rank = 0;
    for (const int ranks : ranks_on_node) {
        const int leader = rank++;
        leaders.push_back(leader);
        for (int place = 1; place < ranks; place++, rank++) {
            to_leaders.push_back({rank, leader, 0, nodes, Arrival::add});
            from_leaders.push_back({leader, rank, 0, nodes, Arrival::replace});
        }
    }
    MessagePlan plan{nodes, {}};
    if (!to_leaders.empty())
        plan.rounds.push_back(to_leaders);
    for (int step = 0; step < 2 * (nodes - 1); step++) {
        const Arrival arrival = step < nodes - 1 ? Arrival::add : Arrival::replace;
        plan.rounds.emplace_back();
        for (int node = 0; node < nodes; node++) {
            const int next = (node + 1) % nodes, chunk = (node - 1 - step + 2 * nodes) % nodes;
            plan.rounds.back().push_back({leaders[node], leaders[next], chunk, 1, arrival});
        }
    }
    if (!from_leaders.empty())
        plan.rounds.push_back(from_leaders);
    return plan;
    // end stub
}

PortLoad leader_load(const EvenNodes& cluster, double bytes) {
    // stub: port_load
    //: Which messages of your plan leave a node?
    const int steps = 2 * (cluster.nodes - 1);
    return {steps, steps * bytes / cluster.nodes};
    // end stub
}

PortLoad rail_load(const EvenNodes& cluster, double bytes) {
    // stub: port_load
    //: How many rails use the port that has most of them?
    const int rails = (cluster.ranks_per_node + cluster.ports - 1) / cluster.ports;
    const int messages = 2 * (cluster.nodes - 1) * rails;
    return {messages, messages * bytes / (cluster.nodes * cluster.ranks_per_node)};
    // end stub
}

std::vector<double> leader_divisors(const std::vector<int>& ranks_on_node) {
    // stub: divisors
    //: The sum of what the leaders have then must be the mean.
    const int ranks = std::accumulate(ranks_on_node.begin(), ranks_on_node.end(), 0);
    return std::vector<double>(ranks_on_node.size(), ranks);
    // end stub
}

}  // namespace ddp
