// The exercise rail_trees: plans whose messages are followed one by one, and trees beside rings
// over a simulated network.
#include "exercises/21_cluster/rail_trees.hpp"

#include <cmath>

#include "common/report/units.hpp"
#include "exercises/support/plans.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

bool is_near(double yours, double right, double tolerance = 1e-9) {
    return std::abs(yours - right) <= tolerance * std::abs(right);  // false for NaN
}

int log2_rounded_up(int number) {
    int rounds = 0;
    while (1 << rounds < number)
        rounds++;
    return rounds;
}

std::string shape_text(int nodes, int ranks_per_node) {
    return "On " + format_count(nodes, "node") + " of " + format_count(ranks_per_node, "rank") +
           ": ";
}

// ---- Task tree_plan

// The parts of a rank's number, and of a vertex's along its rail.
struct Place {
    int nodes, ranks_per_node, rank;

    int node() const { return rank / ranks_per_node; }
    int rail() const { return rank % ranks_per_node; }
    int vertex() const { return (node() - rail() % nodes + nodes) % nodes; }
};

void check_rails(const MessagePlan& plan, int nodes, int ranks_per_node, const std::string& what) {
    for (const auto& round : plan.rounds)
        for (const PlannedMessage& message : round) {
            const Place from{nodes, ranks_per_node, message.from},
                to{nodes, ranks_per_node, message.to};
            if (from.node() == to.node())
                continue;
            const std::string sends = what + "rank " + std::to_string(message.from) + " sends to " +
                                      "rank " + std::to_string(message.to);
            if (from.rail() != to.rail())
                throw Wrong(sends + ", from place " + std::to_string(from.rail()) +
                            " of a node to place " + std::to_string(to.rail()) +
                            " of another one. A rail has the ranks with the same place.");
            if (message.first != from.rail() || message.count != 1)
                throw Wrong(sends + ", but not chunk " + std::to_string(from.rail()) +
                            " alone: rail " + std::to_string(from.rail()) +
                            " sums up only that one.");
        }
    held();
}

void check_sums(const MessagePlan& plan, int nodes, int ranks_per_node, const std::string& what) {
    const std::optional<WrongSum> wrong = wrong_sum(plan, nodes * ranks_per_node);
    if (!wrong)
        return held();
    const Place has{nodes, ranks_per_node, wrong->rank}, of{nodes, ranks_per_node, wrong->of};
    std::string hint;
    if (wrong->times > 0)
        hint =
            "A chunk is added in the first round and on the way up, and replaces what a rank has "
            "on "
            "the way down and in the last round.";
    else if (wrong->chunk != has.rail())
        hint =
            "In the last round every rank sends the chunk of its place to each other rank of "
            "its node.";
    else if (wrong->chunk != of.rail())
        hint =
            "In the first round every rank sends to each other rank of its node the chunk of "
            "that rank's place, which adds it.";
    else
        hint = "Along rail " + std::to_string(has.rail()) + " the two are the vertices " +
               std::to_string(has.vertex()) + " and " + std::to_string(of.vertex()) +
               ". Does each vertex send upwards when it has the sum of those below it, and "
               "downwards when it has the sum of all?";
    throw Wrong(what + "at the end " + wrong->text() + ".\n" + hint);
}

// Returns the messages that each node sends by the contract: vertex n is the parent of as many
// vertices as it has zeros at its end, if there are so many.
std::vector<int> right_messages(int nodes, int ranks_per_node) {
    std::vector<int> messages(static_cast<std::size_t>(nodes));
    for (int rank = 0; rank < nodes * ranks_per_node; rank++) {
        const Place place{nodes, ranks_per_node, rank};
        int& count = messages[static_cast<std::size_t>(place.node())];
        count += place.vertex() > 0 ? 1 : 0;
        for (int distance = 1; distance < nodes && place.vertex() % (2 * distance) == 0;
             distance *= 2)
            count += place.vertex() + distance < nodes ? 1 : 0;
    }
    return messages;
}

void check_tree(const MessagePlan& plan, int nodes, int ranks_per_node, const std::string& what) {
    const std::size_t rounds =
        static_cast<std::size_t>(2 * log2_rounded_up(nodes) + (ranks_per_node > 1 ? 2 : 0));
    if (plan.rounds.size() != rounds)
        throw Wrong(what + "your plan has " + std::to_string(plan.rounds.size()) +
                    " rounds; it should have " + std::to_string(rounds) +
                    ". In one round all vertices with the same k send, on all rails.");
    const std::vector<int> per_node(static_cast<std::size_t>(nodes), ranks_per_node);
    const std::vector<int> sent = sent_by(plan, node_after_node(per_node)).messages;
    const std::vector<int> right = right_messages(nodes, ranks_per_node);
    for (std::size_t node = 0; node < right.size(); node++)
        if (sent[node] != right[node])
            throw Wrong(what + "node " + std::to_string(node) + " sends " +
                        format_count(sent[node], "message") + " to other nodes; it should be " +
                        format_count(right[node], "message") +
                        ". Is the root of rail i on node i modulo H, and is the parent of vertex n "
                        "the vertex whose number has one power of two less?");
    held();
}

void check_tree_plan() {
    constexpr struct {
        int nodes, ranks_per_node;
    } shapes[] = {{2, 1}, {4, 1}, {2, 2}, {4, 3}, {8, 2}, {3, 2}, {7, 3}, {2, 5}};
    for (const auto& [nodes, ranks_per_node] : shapes) {
        const std::string what = shape_text(nodes, ranks_per_node);
        trying(what + "your plan is asked for.");
        const MessagePlan plan = rail_tree_plan(nodes, ranks_per_node);
        trying("");
        if (plan.chunks != ranks_per_node)
            throw Wrong(what + "your array has " + format_count(plan.chunks, "chunk") +
                        ". There is one for each place of a node, " +
                        std::to_string(ranks_per_node) + ".");
        check_plan(plan, nodes * ranks_per_node);
        check_rails(plan, nodes, ranks_per_node, what);
        check_sums(plan, nodes, ranks_per_node, what);
        check_tree(plan, nodes, ranks_per_node, what);
    }
}

// ---- Task crossover

// Returns what a wrong size tells, or "".
std::string cause_of(const CostModel& message, int nodes, int ranks_per_node, double yours) {
    const double up = log2_rounded_up(nodes), ring = nodes - 1, ratio = ring / nodes;
    const double alpha = message.alpha_s, beta = message.beta_s_per_byte;
    const double per_rank = (ring - up) * alpha / ((up - ratio) * beta);
    const std::pair<double, const char*> wrongs[] = {
        {per_rank, "That's the size of one rank's chunk. The array has L of them.\n"},
        {per_rank * ranks_per_node * beta / alpha * beta / alpha,
         "alpha and beta have changed places.\n"},
        {(ring - up) * alpha / (up * beta) * ranks_per_node, "You forget the bytes of the ring.\n"},
        {ring * alpha / ((up - ratio) * beta) * ranks_per_node,
         "You forget the latencies of the tree.\n"},
        {(ring - up) * alpha / ((up - 2 * ratio) * beta) * ranks_per_node,
         "You count the bytes of the ring for both ways, and the tree's for one.\n"}};
    for (const auto& [wrong, words] : wrongs)
        if (is_near(yours, wrong))
            return words;
    return "";
}

void check_crossover_of(const CostModel& message, int nodes, int ranks_per_node) {
    const double yours = trees_are_faster_up_to(message, nodes, ranks_per_node);
    const std::string what = shape_text(nodes, ranks_per_node) + "with " +
                             format_seconds(message.alpha_s) + " and " +
                             format_bandwidth(1 / message.beta_s_per_byte) + ", ";
    if (!(yours > 0 && std::isfinite(yours)))
        throw Wrong(what + "you say " + std::to_string(yours) +
                    " bytes, but for a few bytes trees are faster: they have fewer rounds.");
    const simulator::Cluster cluster =
        nodes_with_ports(nodes, ranks_per_node, message.alpha_s, 1 / message.beta_s_per_byte);
    const MessagePlan trees = rail_tree_plan(nodes, ranks_per_node),
                      rings = rail_ring_plan(nodes, ranks_per_node);
    for (const double factor : {0.97, 1.03}) {
        const double bytes = factor * yours;
        const double tree_s = seconds_of(trees, cluster, bytes),
                     ring_s = seconds_of(rings, cluster, bytes);
        if ((tree_s < ring_s) != (factor < 1))
            throw Wrong(what + "you say that trees are faster up to " + format_bytes(yours) +
                        ". An array of " + format_bytes(bytes) + " takes " +
                        format_seconds(tree_s) + " by trees and " + format_seconds(ring_s) +
                        " by rings.\n" + cause_of(message, nodes, ranks_per_node, yours) +
                        "Write down both times, and set them equal.");
    }
    held();
}

void check_crossover() {
    check_crossover_of({1e-3, 1e-8}, 8, 1);
    check_crossover_of({1e-3, 1e-8}, 8, 4);
    check_crossover_of({14e-6, 1 / 48e9}, 16, 8);
    check_crossover_of({50e-6, 8e-9}, 4, 3);
    check_crossover_of({14e-6, 1 / 48e9}, 128, 2);
    const double with_two = trees_are_faster_up_to({1e-3, 1e-8}, 2, 4);
    if (with_two != 0)
        throw Wrong("On 2 nodes of 4 ranks: you say " + std::to_string(with_two) +
                    " bytes. With two nodes both have two rounds between nodes, and the messages "
                    "of the ring are half as long, so it's always faster: the answer is 0.");
    held();
}

}  // namespace

std::vector<Task> tasks() {
    return {{"tree_plan", check_tree_plan}, {"crossover", check_crossover}};
}

}  // namespace ddp::test
