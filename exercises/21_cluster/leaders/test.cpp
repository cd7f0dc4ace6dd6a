// The exercise leaders: plans whose messages are followed one by one, and what their ports carry.
#include "exercises/21_cluster/leaders.hpp"

#include <cmath>
#include <numeric>

#include "common/report/units.hpp"
#include "exercises/support/plans.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

bool is_near(double yours, double right, double tolerance = 1e-9) {
    return std::abs(yours - right) <= tolerance * std::abs(right);  // false for NaN
}

// ---- Task leader_plan

struct PlanCase {
    std::vector<int> ranks_on_node;
    NodeOf node_of = node_after_node(ranks_on_node);
    int nodes = static_cast<int>(ranks_on_node.size());
    int ranks = static_cast<int>(node_of.size());

    bool is_leader(int rank) const {
        const auto r = static_cast<std::size_t>(rank);
        return r == 0 || node_of[r] != node_of[r - 1];
    }
};

void check_speakers(const PlanCase& now, const MessagePlan& plan, const std::string& what) {
    for (const auto& round : plan.rounds)
        for (const PlannedMessage& message : round)
            for (const int rank : {message.from, message.to})
                if (now.node_of[static_cast<std::size_t>(message.from)] !=
                        now.node_of[static_cast<std::size_t>(message.to)] &&
                    !now.is_leader(rank))
                    throw Wrong(what + "rank " + std::to_string(message.from) + " sends to rank " +
                                std::to_string(message.to) + " on another node, but rank " +
                                std::to_string(rank) +
                                " is not a leader. The leader is the first rank of its node.");
    const Sent sent = sent_by(plan, now.node_of);
    const auto silent = std::ranges::find(sent.messages, 0);
    if (silent != sent.messages.end())
        throw Wrong(what + "node " + std::to_string(silent - sent.messages.begin()) +
                    " sends nothing to other nodes. Its leader is the first rank of that node, and "
                    "comes after all ranks of the nodes before it.");
    held();
}

void check_sums(const PlanCase& now, const MessagePlan& plan, const std::string& what) {
    const std::optional<WrongSum> wrong = wrong_sum(plan, now.ranks);
    if (!wrong)
        return held();
    std::string hint;
    if (wrong->times > 0)
        hint = "A complete sum replaces what a rank has; only the first half of the ring adds.";
    else if (!now.is_leader(wrong->rank))
        hint = "In the last round each leader sends the whole sum to the ranks of its node.";
    else if (!now.is_leader(wrong->of))
        hint = "In round 0 each rank sends its array to its leader, which adds.";
    else
        hint =
            "After H - 1 rounds of the ring each leader has one complete chunk; the next H - 1 "
            "rounds "
            "bring it to the others.";
    throw Wrong(what + "at the end " + wrong->text() + ".\n" + hint);
}

// The leaders' ring, by the bytes, the messages and the seconds it takes.
void check_ring(const PlanCase& now, const MessagePlan& plan, const std::string& what) {
    const int steps = 2 * (now.nodes - 1);
    const Sent sent = sent_by(plan, now.node_of);
    for (std::size_t node = 0; node < sent.shares.size(); node++) {
        if (!is_near(sent.shares[node], 1.0 * steps / now.nodes))
            throw Wrong(what + "node " + std::to_string(node) + " sends " +
                        format_fixed(sent.shares[node], 3) +
                        " times the array to other nodes; round the ring of leaders it is "
                        "2 (H - 1) / H = " +
                        format_fixed(1.0 * steps / now.nodes, 3) +
                        ". Each of its messages is one of H chunks.");
        if (sent.messages[node] != steps)
            throw Wrong(what + "node " + std::to_string(node) + " sends " +
                        format_count(sent.messages[node], "message") +
                        " to other nodes; round the ring of leaders it is one in each of "
                        "2 (H - 1) = " +
                        std::to_string(steps) + " rounds.");
    }
    const std::size_t rounds = static_cast<std::size_t>(steps + (now.ranks > now.nodes ? 2 : 0));
    if (plan.rounds.size() != rounds)
        throw Wrong(what + "your plan has " + std::to_string(plan.rounds.size()) +
                    " rounds; it should have " + std::to_string(rounds) + ".");
    held();
}

// How long it takes where a byte takes 10 ns and a message 1 ms.
void check_seconds(const PlanCase& now, const MessagePlan& plan, const std::string& what) {
    const double bytes = 1e6, alpha_s = 1e-3, beta_s = 1e-8;
    const int per_node = now.ranks_on_node[0];
    const double yours =
        seconds_of(plan, nodes_with_ports(now.nodes, per_node, alpha_s, 1 / beta_s), bytes);
    const double right = 2 * (now.nodes - 1) * (alpha_s + bytes / now.nodes * beta_s);
    if (!is_near(yours, right, 0.01))
        throw Wrong(what + "over links with 1 ms and 100 MB/s between nodes, 1 MB takes " +
                    format_seconds(yours) + " by your plan; a ring of leaders takes " +
                    format_seconds(right) +
                    ".\nIn each round every leader sends one chunk to the next leader: the one "
                    "that it got in the round before.");
    held();
}

void check_leader_plan() {
    const std::vector<int> shapes[] = {{1, 1},    {2, 2}, {3, 3, 3, 3},
                                       {2, 1, 3}, {1, 4}, {2, 2, 2, 2, 2}};
    for (const std::vector<int>& ranks_on_node : shapes) {
        const PlanCase now{ranks_on_node};
        const std::string what = "On " + nodes_text(ranks_on_node) + ": ";
        trying(what + "your plan is asked for.");
        const MessagePlan plan = leader_plan(ranks_on_node);
        trying("");
        if (plan.chunks != now.nodes)
            throw Wrong(what + "your array has " + std::to_string(plan.chunks) +
                        " chunks. The ring has H leaders, so it should have H.");
        check_plan(plan, now.ranks);
        check_speakers(now, plan, what);
        check_sums(now, plan, what);
        check_ring(now, plan, what);
        if (ranks_on_node.front() == ranks_on_node.back() &&
            now.nodes * ranks_on_node[0] == now.ranks)
            check_seconds(now, plan, what);
    }
}

// ---- Task port_load

// Returns the load of the busiest port, counted in a plan.
PortLoad counted(const MessagePlan& plan, const EvenNodes& cluster, double bytes) {
    const int per_node = cluster.ranks_per_node;
    const auto ports = static_cast<std::size_t>(cluster.nodes * cluster.ports);
    std::vector<PortLoad> loads(ports);
    for (const auto& round : plan.rounds)
        for (const PlannedMessage& message : round) {
            const int node = message.from / per_node;
            if (node == message.to / per_node)
                continue;
            const int port = node * cluster.ports + message.from % per_node % cluster.ports;
            loads[static_cast<std::size_t>(port)].messages++;
            loads[static_cast<std::size_t>(port)].bytes += bytes * message.count / plan.chunks;
        }
    return *std::ranges::max_element(loads, {}, &PortLoad::messages);
}

std::string to_string(const PortLoad& load) {
    return std::to_string(load.messages) + " messages with " + format_fixed(load.bytes, 1) +
           " bytes";
}

// Returns what wrong bytes tell, or "".
std::string cause_of(const EvenNodes& cluster, bool is_rails, double bytes, const PortLoad& yours,
                     const PortLoad& right) {
    const int nodes = cluster.nodes, ranks = nodes * cluster.ranks_per_node;
    if (!is_rails && is_near(yours.bytes, right.bytes / cluster.ranks_per_node))
        return "You divide by L and then by H, as rails do. A leader has the sum of all L ranks of "
               "its node, and sends all of it.\n";
    if (is_near(yours.bytes, right.bytes / 2))
        return "That's half of it: the sums go round the ring, too.\n";
    if (is_near(yours.bytes, right.messages * bytes))
        return "A message is a chunk, and not the whole array.\n";
    if (is_near(yours.bytes, 2.0 * (ranks - 1) / ranks * bytes))
        return "That's one ring of all ranks.\n";
    if (is_rails && is_near(yours.bytes, 2.0 * (nodes - 1) / ranks * bytes))
        return "That's one rail. If there are fewer ports than ranks, a port has several.\n";
    if (is_rails && is_near(yours.bytes, 2.0 * (nodes - 1) / nodes * bytes))
        return "That's the whole node. Its rails use several ports.\n";
    return "";
}

void check_load(const EvenNodes& cluster, bool is_rails, const std::string& hint) {
    const double bytes = 1'000'003;  // nothing divides it
    const PortLoad yours = is_rails ? rail_load(cluster, bytes) : leader_load(cluster, bytes);
    const std::vector<int> shape(static_cast<std::size_t>(cluster.nodes), cluster.ranks_per_node);
    const PortLoad right = counted(
        is_rails ? rail_ring_plan(cluster.nodes, cluster.ranks_per_node) : leader_plan(shape),
        cluster, bytes);
    if (yours.messages == right.messages && is_near(yours.bytes, right.bytes, 1e-12))
        return held();
    throw Wrong(std::to_string(cluster.nodes) + " nodes of " +
                std::to_string(cluster.ranks_per_node) + " ranks, with " +
                std::to_string(cluster.ports) + (cluster.ports == 1 ? " port" : " ports") +
                " each, an array of 1000003 bytes, " + (is_rails ? "by rails" : "by leaders") +
                ": the busiest port sends " + to_string(right) + ", counted in " +
                (is_rails ? "the plan" : "your plan") + "; you say " + to_string(yours) + ".\n" +
                cause_of(cluster, is_rails, bytes, yours, right) + hint);
}

void check_port_load() {
    check_load({4, 3, 3}, false, "The case: three ports, of which leaders use one.");
    check_load({2, 2, 1}, false, "The case: one port.");
    check_load({3, 1, 1}, false, "The case: three nodes of one rank.");
    check_load({2, 2, 2}, true, "The case: a port for each rail.");
    check_load({4, 3, 1}, true, "The case: one port for all rails of a node.");
    check_load({4, 4, 2}, true, "The case: two rails per port.");
    check_load({3, 5, 2}, true,
               "The case: five rails and two ports. The places 0, 2 and 4 use port 0, which sends "
               "most.");
}

// ---- Task divisors

void check_divisors_of(const std::vector<int>& ranks_on_node, const std::string& hint) {
    const std::vector<double> divisors = leader_divisors(ranks_on_node);
    const std::string what = "On " + nodes_text(ranks_on_node) + ": ";
    if (divisors.size() != ranks_on_node.size())
        throw Wrong(what + "you return " + std::to_string(divisors.size()) +
                    " divisors, and there are " + std::to_string(ranks_on_node.size()) + " nodes.");
    const int ranks = std::accumulate(ranks_on_node.begin(), ranks_on_node.end(), 0);
    // Rank r has r + 1.
    double result = 0, right = 0, mean_of_means = 0;
    int rank = 0;
    for (std::size_t node = 0; node < divisors.size(); node++) {
        double sum = 0;
        for (int i = 0; i < ranks_on_node[node]; i++)
            sum += ++rank;
        result += sum / divisors[node];
        right += sum / ranks;
        mean_of_means += sum / ranks_on_node[node] / static_cast<double>(divisors.size());
    }
    if (is_near(result, right))
        return held();
    std::string cause;
    if (is_near(result, mean_of_means))
        cause =
            "You divide by L and then by H. That's the mean of the nodes' means, in which a rank "
            "counts more if its node has few ranks.\n";
    else if (is_near(result, right * ranks))
        cause = "That's the sum.\n";
    else if (is_near(result, mean_of_means * static_cast<double>(divisors.size())))
        cause = "That adds up the means of the nodes.\n";
    throw Wrong(what + "the ranks have 1, 2, ..., " + std::to_string(ranks) + ", and the mean is " +
                format_fixed(right, 3) + "; with your divisors it is " + format_fixed(result, 3) +
                ".\n" + cause + hint);
}

void check_divisors() {
    check_divisors_of({3, 1}, "The case: four ranks, so each summand counts a quarter.");
    check_divisors_of({1, 2, 4}, "The case: seven ranks, so each summand counts a seventh.");
    check_divisors_of({2, 2}, "The case: equal nodes, for which several ways are right.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"leader_plan", check_leader_plan},
            {"port_load", check_port_load},
            {"divisors", check_divisors}};
}

}  // namespace ddp::test
