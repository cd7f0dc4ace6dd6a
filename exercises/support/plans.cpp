#include "exercises/support/plans.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

std::size_t index(int number) {
    return static_cast<std::size_t>(number);
}

// How often the summands of each rank are in a chunk.
using Summands = std::vector<int>;

// The array of each rank, chunk by chunk.
using Arrays = std::vector<std::vector<Summands>>;

Arrays at_the_end(const MessagePlan& plan, int ranks) {
    Arrays arrays(index(ranks), std::vector<Summands>(index(plan.chunks), Summands(index(ranks))));
    for (std::size_t rank = 0; rank < arrays.size(); rank++)
        for (Summands& chunk : arrays[rank])
            chunk[rank] = 1;
    for (const auto& round : plan.rounds) {
        const Arrays before = arrays;
        for (const PlannedMessage& message : round)
            for (int c = message.first; c < message.first + message.count; c++) {
                Summands& chunk = arrays[index(message.to)][index(c)];
                const Summands& come = before[index(message.from)][index(c)];
                if (message.arrival == Arrival::replace)
                    chunk = come;
                else
                    std::ranges::transform(chunk, come, chunk.begin(), std::plus<>());
            }
    }
    return arrays;
}

std::string to_string(std::size_t round, const PlannedMessage& message) {
    return "In your round " + std::to_string(round) + " rank " + std::to_string(message.from) +
           " sends chunk " + std::to_string(message.first) +
           (message.count == 1 ? "" : " and " + std::to_string(message.count - 1) + " after it") +
           " to rank " + std::to_string(message.to);
}

void check_message(const MessagePlan& plan, int ranks, std::size_t round,
                   const PlannedMessage& message) {
    const auto is_rank = [&](int rank) { return rank >= 0 && rank < ranks; };
    if (!is_rank(message.from) || !is_rank(message.to) || message.from == message.to)
        throw Wrong(to_string(round, message) + ". There are the ranks 0 to " +
                    std::to_string(ranks - 1) + ", and no rank sends to itself.");
    if (message.first < 0 || message.count < 1 || message.first > plan.chunks - message.count)
        throw Wrong(to_string(round, message) + ". There are the chunks 0 to " +
                    std::to_string(plan.chunks - 1) + ", and a message has one or more.");
}

// A round as rounds of the simulator, in which a rank sends one message at most, and all messages
// are equally long. Only the first waits for what was sent before.
simulator::Rounds simulated(const std::vector<PlannedMessage>& messages, int ranks,
                            double chunk_bytes) {
    std::map<std::pair<int, int>, std::vector<int>> by_size_and_number;
    std::map<std::pair<int, int>, int> sent;  // by size and rank
    for (const PlannedMessage& message : messages) {
        const int number = sent[{message.count, message.from}]++;
        auto& partners = by_size_and_number[{message.count, number}];
        partners.resize(index(ranks), -1);
        partners[index(message.from)] = message.to;
    }
    simulator::Rounds rounds;
    for (const auto& [size_and_number, partners] : by_size_and_number)
        rounds.push_back({[partners = partners](int rank) { return partners[index(rank)]; },
                          size_and_number.first * chunk_bytes, rounds.empty()});
    return rounds;
}

}  // namespace

NodeOf node_after_node(const std::vector<int>& ranks_on_node) {
    NodeOf node_of;
    for (std::size_t node = 0; node < ranks_on_node.size(); node++)
        node_of.insert(node_of.end(), index(ranks_on_node[node]), static_cast<int>(node));
    return node_of;
}

std::string nodes_text(const std::vector<int>& ranks_on_node) {
    std::string text;
    for (std::size_t node = 0; node < ranks_on_node.size(); node++)
        text += (node == 0                          ? ""
                 : node + 1 == ranks_on_node.size() ? " and "
                                                    : ", ") +
                std::to_string(ranks_on_node[node]);
    return "nodes of " + text + (ranks_on_node.back() == 1 ? " rank" : " ranks");
}

void check_plan(const MessagePlan& plan, int ranks) {
    for (std::size_t round = 0; round < plan.rounds.size(); round++) {
        std::map<std::pair<int, int>, std::vector<Arrival>> arrivals;  // by rank and chunk
        for (const PlannedMessage& message : plan.rounds[round]) {
            check_message(plan, ranks, round, message);
            for (int c = message.first; c < message.first + message.count; c++) {
                auto& come = arrivals[{message.to, c}];
                come.push_back(message.arrival);
                if (come.size() > 1 && std::ranges::count(come, Arrival::replace) > 0)
                    throw Wrong(to_string(round, message) +
                                ", to which that chunk comes from another rank as well in this "
                                "round, and one of the two is to replace what it has. Which of "
                                "them stays?");
            }
        }
    }
}

std::string WrongSum::text() const {
    return "rank " + std::to_string(rank) +
           (times == 0 ? " lacks the summands of rank " + std::to_string(of)
                       : " has the summands of rank " + std::to_string(of) + " " +
                             std::to_string(times) + " times") +
           " in chunk " + std::to_string(chunk);
}

std::optional<WrongSum> wrong_sum(const MessagePlan& plan, int ranks) {
    const Arrays arrays = at_the_end(plan, ranks);
    for (const bool is_missing : {true, false})
        for (int rank = 0; rank < ranks; rank++)
            for (int chunk = 0; chunk < plan.chunks; chunk++)
                for (int of = 0; of < ranks; of++)
                    if (const int times = arrays[index(rank)][index(chunk)][index(of)];
                        is_missing ? times == 0 : times != 1)
                        return WrongSum{rank, chunk, of, times};
    return std::nullopt;
}

Sent sent_by(const MessagePlan& plan, const NodeOf& node_of) {
    const std::size_t nodes = index(std::ranges::max(node_of) + 1);
    Sent sent{std::vector<int>(nodes), std::vector<double>(nodes)};
    for (const auto& round : plan.rounds)
        for (const PlannedMessage& message : round) {
            const int node = node_of[index(message.from)];
            if (node == node_of[index(message.to)])
                continue;
            sent.messages[index(node)]++;
            sent.shares[index(node)] += 1.0 * message.count / plan.chunks;
        }
    return sent;
}

double seconds_of(const MessagePlan& plan, const simulator::Cluster& cluster, double bytes) {
    simulator::Rounds rounds;
    for (const auto& round : plan.rounds) {
        const simulator::Rounds more = simulated(round, cluster.ranks(), bytes / plan.chunks);
        rounds.insert(rounds.end(), more.begin(), more.end());
    }
    return rounds.empty() ? 0 : simulated_s(cluster, {{rounds}});
}

simulator::Cluster nodes_with_ports(int nodes, int ranks_per_node, double alpha_s,
                                    double bytes_per_second) {
    constexpr double free = std::numeric_limits<double>::max();
    return {.nodes = nodes,
            .ranks_per_node = ranks_per_node,
            .inside = simulator::straight_link(0, free),
            .between = simulator::straight_link(alpha_s, bytes_per_second),
            .ports = ranks_per_node};
}

MessagePlan ring_plan(int ranks) {
    MessagePlan plan{ranks, {}};
    for (int step = 0; step < 2 * (ranks - 1); step++) {
        plan.rounds.emplace_back();
        for (int rank = 0; rank < ranks; rank++)
            plan.rounds.back().push_back({rank, (rank + 1) % ranks,
                                          (rank - 1 - step + 2 * ranks) % ranks, 1,
                                          step < ranks - 1 ? Arrival::add : Arrival::replace});
    }
    return plan;
}

MessagePlan rail_ring_plan(int nodes, int ranks_per_node) {
    const int ranks = nodes * ranks_per_node;
    MessagePlan plan{ranks, {}};
    const auto within = [&](Arrival arrival) {
        std::vector<PlannedMessage> messages;
        for (int rank = 0; rank < ranks; rank++)
            for (int step = 1; step < ranks_per_node; step++) {
                const int place = rank % ranks_per_node;
                const int other = (place + step) % ranks_per_node;
                const int owner = arrival == Arrival::add ? other : place;
                messages.push_back({rank, rank - place + other, owner * nodes, nodes, arrival});
            }
        if (!messages.empty())
            plan.rounds.push_back(messages);
    };
    within(Arrival::add);
    for (int step = 0; step < 2 * (nodes - 1); step++) {
        plan.rounds.emplace_back();
        for (int rank = 0; rank < ranks; rank++) {
            const int place = rank % ranks_per_node, node = rank / ranks_per_node;
            const int chunk = place * nodes + (node - 1 - step + 2 * nodes) % nodes;
            plan.rounds.back().push_back({rank, (rank + ranks_per_node) % ranks, chunk, 1,
                                          step < nodes - 1 ? Arrival::add : Arrival::replace});
        }
    }
    within(Arrival::replace);
    return plan;
}

}  // namespace ddp::test
