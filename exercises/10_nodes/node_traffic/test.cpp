// The exercise node_traffic: the reader's bytes beside a count of the messages that leave each
// node, and the cause of a wrong number, where it tells one.
#include "exercises/10_nodes/node_traffic.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/report/units.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Nodes = std::vector<int>;

std::string to_string(const std::vector<int>& numbers) {
    std::string text;
    for (const int number : numbers)
        text += (text.empty() ? "" : " ") + std::to_string(number);
    return text;
}

// Returns how many ranks of each node send to another node, in a ring through these nodes.
std::vector<int> senders_of(const Nodes& ring) {
    std::vector<int> senders(ring.size());
    int to = ring[0];
    for (auto node = ring.rbegin(); node != ring.rend(); ++node) {
        senders.at(static_cast<std::size_t>(*node)) += *node == to ? 0 : 1;
        to = *node;
    }
    return senders;
}

void check_bytes(const Nodes& ring, const std::string& the_case) {
    constexpr double bytes = 1'200'000;
    const auto ranks = static_cast<double>(ring.size());
    const double per_sender = 2 * (ranks - 1) / ranks * bytes;
    const std::vector<int> senders = senders_of(ring);
    const int most = std::ranges::max(senders);
    const double right = per_sender * most, yours = bytes_of_ring(ring, bytes);
    const auto is_yours = [&](double number) { return std::abs(yours - number) <= 1e-6 * bytes; };
    if (is_yours(right))
        return;
    const int all = std::reduce(senders.begin(), senders.end());
    std::string hint =
        "How many steps does this ring have, how long is a chunk, and who sends it away?";
    if (!the_case.empty())
        hint = the_case;
    else if (is_yours(right / 2))
        hint = "That is one time round. The sums grow round the ring, and then go round to all.";
    else if (is_yours(per_sender * all))
        hint = "That is what all nodes send together. Which of them sends most?";
    else if (is_yours(per_sender))
        hint = "That is a ring that leaves each node once. How often does this one?";
    throw Wrong("A ring through nodes " + to_string(ring) + ", an array of 1200000 bytes: you " +
                "say that " + format_fixed(yours, 0) + " bytes leave the node that sends most, " +
                "right is " + format_fixed(right, 0) + ".\n" + hint);
}

void check_any_ring() {
    check_bytes({0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}, "");
    check_bytes({0, 1, 0, 2, 0, 0, 1, 1}, "");
    check_bytes({0, 1, 2, 1}, "The last rank of a ring sends to the first.");
    check_bytes({3, 1, 0, 2}, "The case: one rank per node.");
    check_bytes({0, 0, 0}, "The case: a single node, and nothing leaves it.");
}

void check_best_ring() {
    for (const Nodes& node_of :
         {Nodes{0, 1, 0, 1, 0, 1}, Nodes{2, 0, 1, 0, 2, 0}, Nodes{1, 0, 2}, Nodes{0, 0}}) {
        const std::vector<int> ring = best_ring(node_of);
        const std::string yours =
            "The ranks are on nodes " + to_string(node_of) + ": your ring is " + to_string(ring);
        std::vector<int> sorted = ring, all(node_of.size());
        std::ranges::sort(sorted);
        std::iota(all.begin(), all.end(), 0);
        if (sorted != all)
            throw Wrong(yours + ".\nIt must have each rank once: " + to_string(all) +
                        ", in an order that you choose.");
        Nodes nodes;
        for (const int rank : ring)
            nodes.push_back(node_of[static_cast<std::size_t>(rank)]);
        if (std::ranges::max(senders_of(nodes)) > 1)
            throw Wrong(yours + ", through nodes " + to_string(nodes) +
                        ".\nA node has more than one rank that sends to another node.");
    }
}

}  // namespace

std::vector<Task> tasks() {
    return {{"any_ring", check_any_ring}, {"best_ring", check_best_ring}};
}

}  // namespace ddp::test
