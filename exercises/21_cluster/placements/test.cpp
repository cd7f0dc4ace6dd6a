// The exercise placements: rings whose steps are followed one by one, and all placements there are.
#include "exercises/21_cluster/placements.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/report/units.hpp"
#include "exercises/support/plans.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Chunks = std::vector<double>;

bool is_near(double yours, double right) {
    return std::abs(yours - right) <= 1e-9 * std::max(1.0, std::abs(right));  // false for NaN
}

std::string to_string(const NodeOf& node_of) {
    std::string text;
    for (const int node : node_of)
        text += (text.empty() ? "" : " ") + std::to_string(node);
    return text;
}
std::string to_string(const Chunks& chunks) {
    std::string text;
    for (const double chunk : chunks)
        text +=
            (text.empty() ? "" : ", ") + format_fixed(chunk, chunk == std::floor(chunk) ? 0 : 3);
    return text;
}

// ---- Task leaving

// How a ring is followed, right or wrong.
struct Count {
    const char* words;       // of the mistake
    bool has_first, second;  // half of the steps
    bool closes;             // the last rank sends to rank 0
    bool by_receiver;        // counts what comes to the node
    bool skips_nothing;      // every chunk in both halves
};
Chunks followed(const Count& count, const NodeOf& node_of, const Chunks& chunks) {
    const int ranks = static_cast<int>(node_of.size());
    Chunks leaving(static_cast<std::size_t>(std::ranges::max(node_of) + 1));
    const int steps = 2 * (count.skips_nothing ? ranks : ranks - 1);
    for (int step = count.has_first ? 0 : steps / 2; step < (count.second ? steps : steps / 2);
         step++)
        for (int rank = 0; rank < (count.closes ? ranks : ranks - 1); rank++) {
            const auto from = static_cast<std::size_t>(node_of[static_cast<std::size_t>(rank)]);
            const auto to =
                static_cast<std::size_t>(node_of[static_cast<std::size_t>((rank + 1) % ranks)]);
            if (from != to)
                leaving[count.by_receiver ? to : from] +=
                    chunks[static_cast<std::size_t>((rank - 1 - step + 3 * ranks) % ranks)];
        }
    return leaving;
}
constexpr Count by_contract{"", true, true, true, false, false};
constexpr Count wrong_counts[] = {
    {"That's the first half of the steps. The sums go round, too.\n", true, false, true, false,
     false},
    {"Your ring is not closed: the last rank sends to rank 0.\n", true, true, false, false, false},
    {"That's what comes to each node, and not what leaves it.\n", true, true, true, true, false},
    {"Each half has N - 1 steps, and in them a rank sends all chunks but one.\n", true, true, true,
     false, true}};

// Returns what a wrong count tells, or "".
std::string cause_of(const NodeOf& node_of, const Chunks& chunks, const Chunks& yours) {
    const auto is = [&](const Chunks& wrong) { return std::ranges::equal(yours, wrong, is_near); };
    for (const Count& wrong : wrong_counts)
        if (is(followed(wrong, node_of, chunks)))
            return wrong.words;
    const double all = std::accumulate(chunks.begin(), chunks.end(), 0.0);
    const Chunks equal(chunks.size(), all / static_cast<double>(chunks.size()));
    if (is(followed(by_contract, node_of, equal)))
        return "That's right for equal chunks; these are not equal.\n";
    for (const std::size_t twice : {0u, 1u}) {
        Chunks leaving(yours.size());
        for (std::size_t rank = 0; rank < node_of.size(); rank++)
            if (node_of[rank] != node_of[(rank + 1) % node_of.size()])
                leaving[static_cast<std::size_t>(node_of[rank])] +=
                    2 * (all - chunks[(rank + twice) % chunks.size()]);
        if (is(leaving))
            return "The chunk that a rank does not send is not the same in both halves.\n";
    }
    return "";
}

void check_leaving_of(const NodeOf& node_of, const Chunks& chunks, const std::string& hint) {
    const std::string what =
        "Ranks on nodes " + to_string(node_of) + ", chunks of " + to_string(chunks) + " bytes: ";
    trying(what + "your bytes_leaving() is asked.");
    const Chunks yours = bytes_leaving(node_of, chunks);
    trying("");
    const Chunks right = followed(by_contract, node_of, chunks);
    if (yours.size() != right.size())
        throw Wrong(what + "you return " + format_count(static_cast<int>(yours.size()), "number") +
                    " for " + format_count(static_cast<int>(right.size()), "node") + ".");
    if (!std::ranges::equal(yours, right, is_near))
        throw Wrong(what + "the nodes send " + to_string(right) + " bytes, step by step; you say " +
                    to_string(yours) + ".\n" + cause_of(node_of, chunks, yours) + hint);
    held();
}

void check_leaving() {
    check_leaving_of({0, 0, 1, 1}, {25, 25, 25, 25}, "The case: 2 (N - 1) / N of 100 bytes.");
    check_leaving_of({0, 1, 0, 1}, {25, 25, 25, 25}, "The case: every rank leaves its node.");
    check_leaving_of({0, 0, 1, 1, 1}, {1, 10, 100, 1000, 10000},
                     "The case: ranks 1 and 4 leave their nodes. Which chunks do they send?");
    check_leaving_of({1, 1, 0, 2, 0, 2}, {3, 50, 700, 11, 0, 40}, "The case: three nodes.");
    check_leaving_of({0, 1}, {70, 30}, "The case: two ranks.");
    check_leaving_of({0, 0, 0}, {5, 6, 7}, "The case: one node, which nothing leaves.");
}

// ---- Task extremes

int messages_between(const NodeOf& node_of) {
    const std::vector<int> sent =
        sent_by(ring_plan(static_cast<int>(node_of.size())), node_of).messages;
    return std::accumulate(sent.begin(), sent.end(), 0);
}

// Returns the placement with the fewest messages, or the most, of all there are.
NodeOf best_of_all(NodeOf node_of, bool is_most) {
    NodeOf best = node_of;
    std::ranges::sort(node_of);
    do {
        const int now = messages_between(node_of), before = messages_between(best);
        if (is_most ? now > before : now < before)
            best = node_of;
    } while (std::next_permutation(node_of.begin() + 1, node_of.end()));  // rank 0 is on node 0
    return best;
}

void check_placement(const std::vector<int>& ranks_on_node, const NodeOf& yours, bool is_most,
                     const NodeOf& right, const std::string& hint) {
    const std::string what = "For " + nodes_text(ranks_on_node) + " you place the ranks on nodes " +
                             to_string(yours) + ", for " + (is_most ? "most" : "fewest") +
                             " bytes between nodes";
    std::vector<int> placed(ranks_on_node.size());
    for (const int node : yours)
        if (node >= 0 && node < static_cast<int>(placed.size()))
            placed[static_cast<std::size_t>(node)]++;
    if (placed != ranks_on_node || yours.size() != right.size())
        throw Wrong(what + ". That's not the number of ranks on each node.");
    const int ranks = static_cast<int>(yours.size());
    const int mine = messages_between(right), sent = messages_between(yours);
    if (sent != mine)
        throw Wrong(what + ". " + std::to_string(sent / (2 * (ranks - 1))) + " of the " +
                    std::to_string(ranks) + " ranks send to another node; on nodes " +
                    to_string(right) + " it is " + std::to_string(mine / (2 * (ranks - 1))) +
                    ".\n" + hint);
    held();
}

void check_extremes() {
    const std::vector<int> shapes[] = {{2, 2},    {3},       {3, 3},    {2, 3, 1}, {4, 1, 1, 1},
                                       {2, 5, 1}, {2, 1, 2}, {2, 2, 3}, {1, 2, 1}, {3, 2, 2}};
    for (const std::vector<int>& ranks_on_node : shapes) {
        const NodeOf in_order = node_after_node(ranks_on_node);
        check_placement(ranks_on_node, fewest_leaving(ranks_on_node), false,
                        best_of_all(in_order, false),
                        "The ring must leave each node once. More than that it need not.");
        check_placement(ranks_on_node, most_leaving(ranks_on_node), true,
                        best_of_all(in_order, true),
                        "Neighbours on one node keep their bytes there: separate the ranks of the "
                        "largest node first, and look at the last rank and rank 0, too.");
    }
}

// ---- Task borders

// Returns what wrong chunks tell, or "".
std::string cause_of_chunks(const Chunks& chunks, int ranks_per_node, double bytes) {
    const auto largest = std::ranges::max_element(chunks);
    if (is_near(*largest, bytes / static_cast<double>(chunks.size())))
        return "Your chunks are equal.\n";
    if (is_near(*largest, bytes))
        return "All bytes are in one chunk, so only one node sends less.\n";
    const auto place = (largest - chunks.begin()) % ranks_per_node;
    if (place != 0 && place != ranks_per_node - 1)
        return "In the first half the last rank of a node does not send its own chunk, and in the "
               "second half not the next rank's. You have made others large.\n";
    return "";
}

void check_borders_of(int nodes, int ranks_per_node) {
    constexpr double bytes = 841;
    const Chunks yours = best_borders(nodes, ranks_per_node, bytes);
    const int ranks = nodes * ranks_per_node;
    const std::string what = format_count(nodes, "node") + " of " +
                             format_count(ranks_per_node, "rank") + ", " + format_fixed(bytes, 0) +
                             " bytes, your chunks have " + to_string(yours) + " bytes";
    if (static_cast<int>(yours.size()) != ranks)
        throw Wrong(what + ": there are N = " + std::to_string(ranks) + " chunks.");
    if (!is_near(std::accumulate(yours.begin(), yours.end(), 0.0), bytes) ||
        std::ranges::min(yours) < 0)
        throw Wrong(what + ": they should have " + format_fixed(bytes, 0) +
                    " bytes in all, and none of them less than 0.");
    const NodeOf node_of =
        node_after_node(std::vector<int>(static_cast<std::size_t>(nodes), ranks_per_node));
    const double busiest = std::ranges::max(followed(by_contract, node_of, yours));
    const double right =
        ranks_per_node == 1 ? 2.0 * (nodes - 1) / nodes * bytes : (2.0 * nodes - 1) / nodes * bytes;
    if (!is_near(busiest, right))
        throw Wrong(what + ": one node sends " + format_fixed(busiest, 0) +
                    " bytes. There are chunks with which none sends more than " +
                    format_fixed(right, 0) + ".\n" + cause_of_chunks(yours, ranks_per_node, bytes) +
                    "Each node's last rank sends 2 K less two chunks: which two?");
    held();
}

void check_borders() {
    check_borders_of(2, 4);
    check_borders_of(4, 3);
    check_borders_of(3, 5);
    check_borders_of(2, 2);
    check_borders_of(4, 1);
}

}  // namespace

std::vector<Task> tasks() {
    return {{"leaving", check_leaving}, {"extremes", check_extremes}, {"borders", check_borders}};
}

}  // namespace ddp::test
