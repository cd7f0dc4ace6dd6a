// The exercise leaders: one rank of each host speaks for the others. Read
// exercises/21_cluster/README.md first.
#include "exercises/21_cluster/leaders.hpp"

#include <numeric>

namespace ddp {

MessagePlan leader_plan(const std::vector<int>& ranks_on_host) {
    // stub: leader_plan
    //: Which ranks are the leaders? Then the rounds: to the leaders, round their ring, and back.
    const int hosts = static_cast<int>(ranks_on_host.size());
    std::vector<int> leaders;
    std::vector<PlannedMessage> to_leaders, from_leaders;
    int rank = 0;
    for (const int ranks : ranks_on_host) {
        const int leader = rank++;
        leaders.push_back(leader);
        for (int place = 1; place < ranks; place++, rank++) {
            to_leaders.push_back({rank, leader, 0, hosts, Arrival::add});
            from_leaders.push_back({leader, rank, 0, hosts, Arrival::replace});
        }
    }
    MessagePlan plan{hosts, {}};
    if (!to_leaders.empty())
        plan.rounds.push_back(to_leaders);
    for (int step = 0; step < 2 * (hosts - 1); step++) {
        const Arrival arrival = step < hosts - 1 ? Arrival::add : Arrival::replace;
        plan.rounds.emplace_back();
        for (int host = 0; host < hosts; host++) {
            const int next = (host + 1) % hosts, chunk = (host - 1 - step + 2 * hosts) % hosts;
            plan.rounds.back().push_back({leaders[host], leaders[next], chunk, 1, arrival});
        }
    }
    if (!from_leaders.empty())
        plan.rounds.push_back(from_leaders);
    return plan;
    // end stub
}

PortLoad leader_load(const EvenHosts& cluster, double bytes) {
    // stub: port_load
    //: Which messages of your plan leave a host?
    const int steps = 2 * (cluster.hosts - 1);
    return {steps, steps * bytes / cluster.hosts};
    // end stub
}

PortLoad rail_load(const EvenHosts& cluster, double bytes) {
    // stub: port_load
    //: How many rails use the port that has most of them?
    const int rails = (cluster.ranks_per_host + cluster.ports - 1) / cluster.ports;
    const int messages = 2 * (cluster.hosts - 1) * rails;
    return {messages, messages * bytes / (cluster.hosts * cluster.ranks_per_host)};
    // end stub
}

std::vector<double> leader_divisors(const std::vector<int>& ranks_on_host) {
    // stub: divisors
    //: The sum of what the leaders have then must be the mean.
    const int ranks = std::accumulate(ranks_on_host.begin(), ranks_on_host.end(), 0);
    return std::vector<double>(ranks_on_host.size(), ranks);
    // end stub
}

}  // namespace ddp
