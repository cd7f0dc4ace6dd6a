// The exercise leaders: one rank of each node speaks for the others. Read
// exercises/21_cluster/README.md first.
#include "exercises/21_cluster/leaders.hpp"

#include <numeric>

namespace ddp {

MessagePlan leader_plan(const std::vector<int>& ranks_on_node) {
    // Which ranks are the leaders? Then the rounds: to the leaders, round their ring, and back.
    throw NotImplemented("leader_plan");
}

PortLoad leader_load(const EvenNodes& cluster, double bytes) {
    // Which messages of your plan leave a node?
    throw NotImplemented("port_load");
}

PortLoad rail_load(const EvenNodes& cluster, double bytes) {
    // How many rails use the port that has most of them?
    throw NotImplemented("port_load");
}

std::vector<double> leader_divisors(const std::vector<int>& ranks_on_node) {
    // The sum of what the leaders have then must be the mean.
    throw NotImplemented("divisors");
}

}  // namespace ddp
