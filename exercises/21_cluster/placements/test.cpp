// The exercise placements, beside rings whose steps are followed one by one.
#include "exercises/21_cluster/placements.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <tuple>

#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using NodeOf = std::vector<int>;
using Chunks = std::vector<double>;

template <class Number>
std::string to_string(const std::vector<Number>& numbers) {
    std::string all;
    for (const Number number : numbers) {
        char text[32];
        std::snprintf(text, sizeof text, "%s%g", all.empty() ? "{" : ", ", double{1} * number);
        all += text;
    }
    return all.empty() ? "{}" : all + "}";
}

bool is_near(double yours, double right) {
    return std::abs(yours - right) <= 1e-9 * std::max(1.0, std::abs(right));  // false for NaN
}

// Follows a ring for so many steps, in which ranks 0 to `senders` - 1 send, and counts a message at
// its sender's node, or at its receiver's.
Chunks followed(const NodeOf& node_of, const Chunks& chunks, int steps, int senders,
                bool at_receiver = false) {
    const int ranks = static_cast<int>(node_of.size());
    Chunks counted(static_cast<std::size_t>(std::ranges::max(node_of) + 1));
    for (int step = 0; step < steps; step++)
        for (int rank = 0; rank < senders; rank++) {
            const int from = node_of[static_cast<std::size_t>(rank)],
                      to = node_of[static_cast<std::size_t>((rank + 1) % ranks)];
            if (from != to)
                counted[static_cast<std::size_t>(at_receiver ? to : from)] +=
                    chunks[static_cast<std::size_t>((rank - 1 - step + 3 * ranks) % ranks)];
        }
    return counted;
}
Chunks right_for(const NodeOf& node_of, const Chunks& chunks) {
    const int ranks = static_cast<int>(node_of.size());
    return followed(node_of, chunks, 2 * (ranks - 1), ranks);
}

// Returns what a wrong count tells, or "".
std::string cause_of(const NodeOf& node_of, const Chunks& chunks, const Chunks& yours) {
    const int ranks = static_cast<int>(node_of.size()), half = ranks - 1;
    const std::pair<Chunks, const char*> wrong_counts[] = {
        {followed(node_of, chunks, half, ranks),
         "That's the first half of the steps. The sums go round, too.\n"},
        {followed(node_of, chunks, 2 * half, ranks - 1),
         "Your ring is not closed: the last rank sends to rank 0.\n"},
        {followed(node_of, chunks, 2 * half, ranks, true),
         "That's what comes to each node, and not what leaves it.\n"},
        {followed(node_of, chunks, 2 * ranks, ranks),
         "Each half has N - 1 steps, and in them a rank sends all chunks but one.\n"}};
    for (const auto& [wrong, words] : wrong_counts)
        if (std::ranges::equal(yours, wrong, is_near))
            return words;
    return "";
}

void check_leaving() {
    const std::tuple<NodeOf, Chunks, const char*> cases[] = {
        {{0, 0, 1, 1}, {25, 25, 25, 25}, "2 (N - 1) / N of 100 bytes."},
        {{0, 1, 0, 1}, {25, 25, 25, 25}, "Every rank leaves its node."},
        {{0, 0, 1, 1, 1},
         {1, 10, 100, 1000, 10000},
         "Ranks 1 and 4 leave their nodes. Which chunks do they send?"},
        {{1, 1, 0, 2, 0, 2}, {3, 50, 700, 11, 0, 40}, "Three nodes."},
        {{0, 0, 0}, {5, 6, 7}, "One node, which nothing leaves."}};
    for (const auto& [node_of, chunks, hint] : cases) {
        const std::string what = "Ranks on nodes " + to_string(node_of) + ", chunks of " +
                                 to_string(chunks) + " bytes: ";
        trying(what + "your bytes_leaving() is asked.");
        const Chunks yours = bytes_leaving(node_of, chunks), right = right_for(node_of, chunks);
        if (!std::ranges::equal(yours, right, is_near))
            throw Wrong(what + "the nodes send " + to_string(right) + ", step by step; you say " +
                        to_string(yours) + ".\n" + cause_of(node_of, chunks, yours) + hint);
    }
}

// Checks a placement with which `right` ranks should send to another node.
void check_placement(const std::vector<int>& ranks_on_node, const NodeOf& yours, int right,
                     const std::string& what, const std::string& hint) {
    const std::string said =
        what + "(" + to_string(ranks_on_node) + ") places the ranks on nodes " + to_string(yours);
    for (std::size_t node = 0; node < ranks_on_node.size(); node++)
        if (std::ranges::count(yours, static_cast<int>(node)) != ranks_on_node[node])
            throw Wrong(said + ". That's not the number of ranks on each node.");
    int leaving = 0;
    for (std::size_t rank = 0; rank < yours.size(); rank++)
        leaving += yours[rank] != yours[(rank + 1) % yours.size()];
    if (leaving != right)
        throw Wrong(said + ": " + std::to_string(leaving) +
                    " ranks send to another node, and right is " + std::to_string(right) + ".\n" +
                    hint);
}

void check_extremes() {
    const std::tuple<std::vector<int>, int, int> cases[] = {
        {{2, 2}, 2, 4},       {{3}, 0, 0},       {{3, 3}, 2, 6},    {{2, 3, 1}, 3, 6},
        {{4, 1, 1, 1}, 4, 6}, {{2, 5, 1}, 3, 6}, {{2, 1, 2}, 3, 5}, {{3, 2, 2}, 3, 7}};
    for (const auto& [ranks_on_node, fewest, most] : cases) {
        check_placement(ranks_on_node, fewest_leaving(ranks_on_node), fewest, "fewest_leaving",
                        "The ring must leave each node once. More than that it need not.");
        check_placement(ranks_on_node, most_leaving(ranks_on_node), most, "most_leaving",
                        "Neighbours on one node keep their bytes there: separate the ranks of the "
                        "largest node first, and look at the last rank and rank 0, too.");
    }
}

void check_borders() {
    const std::tuple<int, int, double> cases[] = {
        {2, 4, 1260}, {4, 3, 1470}, {3, 5, 1400}, {2, 2, 1260}, {4, 1, 1260}};
    for (const auto& [nodes, ranks_per_node, right] : cases) {
        const Chunks yours = best_borders(nodes, ranks_per_node, 840);
        NodeOf node_of;
        for (int rank = 0; rank < nodes * ranks_per_node; rank++)
            node_of.push_back(rank / ranks_per_node);
        const std::string what = "Ranks on nodes " + to_string(node_of) +
                                 ", 840 bytes, your chunks " + to_string(yours) + ": ";
        if (yours.size() != node_of.size() || std::ranges::min(yours) < 0 ||
            !is_near(std::accumulate(yours.begin(), yours.end(), 0.0), 840))
            throw Wrong(what + "each rank has a chunk of 0 or more, and all have 840 bytes.");
        const double busiest = std::ranges::max(right_for(node_of, yours));
        if (!is_near(busiest, right))
            throw Wrong(what + "one node sends " + std::to_string(busiest) + " bytes; " +
                        std::to_string(right) + " is possible.\n" +
                        "A node's last rank sends all bytes twice, less two chunks: which two?");
    }
}

}  // namespace

std::vector<Task> tasks() {
    return {{"leaving", check_leaving}, {"extremes", check_extremes}, {"borders", check_borders}};
}

}  // namespace ddp::test
