// The exercise used_map, against what can be counted by hand, and random cases against a way of
// counting that is slower and simpler.
#include "exercises/17_unused_parameters/used_map.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

std::string text(const std::vector<bool>& values) {
    std::string all;
    for (std::size_t i = 0; i < values.size(); i++)
        if (values[i])
            all += (all.empty() ? "" : ", ") + std::to_string(i);
    return all.empty() ? "none" : all;
}

std::string text(const std::vector<int>& values) {
    std::string all;
    for (const int value : values)
        all += (all.empty() ? "" : ", ") + std::to_string(value);
    return all.empty() ? "none" : all;
}

// "Nodes 0 to 3 are the parameters; 4: from 1 and 0; 5 (detached): ...; the outputs are 8, 11."
std::string text(const Graph& graph, const std::vector<int>& outputs) {
    std::string all = "Nodes 0 to 3 are the parameters 0 to 3";
    for (std::size_t i = 4; i < graph.size(); i++)
        all += "; " + std::to_string(i) + (graph[i].is_detached ? " (detached)" : "") + ": from " +
               text(graph[i].inputs);
    return all + "; the outputs are " + text(outputs) + ".";
}

// ---- search

void check_reached(const Graph& graph, const std::vector<int>& outputs,
                   const std::vector<bool>& right, const std::string& hint) {
    trying("A graph of " + std::to_string(graph.size()) + " nodes. " + hint);
    const std::vector<bool> yours =
        reached_parameters(graph, outputs, static_cast<int>(right.size()));
    if (yours.size() != right.size())
        throw Wrong("You return " + std::to_string(yours.size()) + " values for " +
                    std::to_string(right.size()) + " parameters.\n" + hint);
    if (yours != right)
        throw Wrong("You find the parameters " + text(yours) + "; backward reaches " + text(right) +
                    ".\n" + hint);
}

// Again and again, until nothing changes.
std::vector<bool> reached_slowly(const Graph& graph, const std::vector<int>& outputs,
                                 std::size_t parameters) {
    std::vector<bool> nodes(graph.size(), false), found(parameters, false);
    for (const int output : outputs)
        nodes[static_cast<std::size_t>(output)] = true;
    for (bool has_changed = true; has_changed;) {
        has_changed = false;
        for (std::size_t i = 0; i < graph.size(); i++)
            for (const int input : graph[i].inputs)
                if (nodes[i] && !graph[i].is_detached && !nodes[static_cast<std::size_t>(input)]) {
                    nodes[static_cast<std::size_t>(input)] = true;
                    has_changed = true;
                }
    }
    for (std::size_t i = 0; i < graph.size(); i++)
        if (nodes[i] && graph[i].parameter >= 0)
            found[static_cast<std::size_t>(graph[i].parameter)] = true;
    return found;
}

// Two ways into each of a few layers: without marks, the ways double from layer to layer.
Graph layers(int count) {
    Graph graph{{{}, 0}, {{}, 1}};
    for (int layer = 0; layer < count; layer++)
        graph.push_back({{layer + 1, layer + 1}});
    return graph;
}

void check_search() {
    check_reached(
        {{{}, 0}, {{0}}, {{1}}}, {2}, {true},
        "The output is the third node of a chain: the path goes through the second one. Do "
        "you go from the last node to the first?");
    check_reached({{{}, 0}, {{}, 1}, {{0, 1}}}, {2}, {true, true},
                  "The operation has two inputs: the second one is an input, too.");
    // Parameters 0, 1, 2 and operations with one each: 3 on 0; 4 on 1 and 3; 5 on 2 and 3.
    Graph graph{{{}, 0}, {{}, 1}, {{}, 2}, {{0}}, {{1, 3}}, {{2, 3}}};
    check_reached(graph, {4}, {true, true, false},
                  "A small graph: one branch is not the output's.");
    check_reached(graph, {3}, {true, false, false},
                  "What was computed after the output does not lead to it.");
    for (const std::vector<int>& both : {std::vector<int>{4, 5}, std::vector<int>{5, 4}})
        check_reached(graph, both, {true, true, true},
                      "There are two outputs here, " + text(both) + ", and the loss uses both.");
    graph[3].is_detached = true;
    check_reached(graph, {4, 5}, {false, true, true},
                  "Operation 3 is detached here: backward comes to it, and goes no farther.");
    graph[4].is_detached = true;
    check_reached(graph, {4}, {false, false, false},
                  "The output itself is detached: backward comes to it, and goes no farther.");
    graph[4].is_detached = false;
    check_reached(graph, {}, {false, false, false}, "There is no output, so nothing is reached.");
    check_reached(graph, {0}, {true, false, false}, "A parameter is an output here, too.");
    // Parameter 1, a constant, parameter 0, an operation with all three, parameter 2.
    check_reached({{{}, 1}, {}, {{}, 0}, {{1, 0, 2}}, {{}, 2}, {{3, 4}}}, {3},
                  {true, true, false, false},
                  "Node 0 is parameter 1, node 2 is parameter 0, and node 4 is parameter 2: "
                  "GraphNode::parameter says so. Node 1 is an operation without inputs, node 3 has "
                  "three, and parameter 3 does not occur: this rank has not used it in forward.");
    check_reached(layers(1000), {1001}, {false, true}, "A thousand layers, two paths into each.");
    std::uint64_t random = 1;
    const auto below = [&](std::size_t n) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        return static_cast<int>((random >> 33) % n);
    };
    for (int repeat = 0; repeat < 50; repeat++) {
        Graph any{{{}, 0}, {{}, 1}, {{}, 2}, {{}, 3}};
        while (any.size() < 12)
            any.push_back({{below(any.size()), below(any.size())}, -1, below(5) == 0});
        std::vector<int> outputs{below(12), 11};
        if (repeat % 2 == 1)
            std::ranges::reverse(outputs);
        check_reached(any, outputs, reached_slowly(any, outputs, 4),
                      "A graph made at random. " + text(any, outputs));
    }
}

// ---- first_hang

std::string cause_of_hang(const Hang& yours, const Hang& right, std::size_t ranks,
                          const std::string& hint) {
    std::vector<int> others;
    for (int rank = 0; rank < static_cast<int>(ranks); rank++)
        if (std::ranges::count(right.absent, rank) == 0)
            others.push_back(rank);
    if (yours.bucket == right.bucket && yours.absent == others)
        return "These are the ranks that send it, and wait. Asked for are those that never send "
               "it.";
    if (yours.bucket == right.bucket && yours.absent.size() == right.absent.size() &&
        std::ranges::is_permutation(yours.absent, right.absent))
        return "These are the ranks, but not in ascending order.";
    if (yours.bucket == right.bucket && yours.absent.size() > right.absent.size())
        return hint +
               " (A rank is absent from a bucket once, however many parameters it lacks, and "
               "what it lacks in later buckets does not count.)";
    return hint;
}

void check_hang(const std::vector<std::vector<int>>& buckets,
                const std::vector<std::vector<bool>>& reached, const Hang& right,
                const std::string& hint) {
    const Hang yours = first_hang(buckets, reached);
    if (yours != right)
        throw Wrong("You say bucket " + std::to_string(yours.bucket) + ", which lacks the ranks " +
                    text(yours.absent) + "; it is bucket " + std::to_string(right.bucket) +
                    ", and the ranks " + text(right.absent) + ".\n" +
                    cause_of_hang(yours, right, reached.size(), hint));
}

void check_first_hang() {
    const std::vector<std::vector<int>> buckets{{3, 4}, {2}, {0, 1}};
    const std::vector<bool> all(5, true);
    check_hang(buckets, {all, all, all}, {},
               "All ranks reach everything: nobody waits, and the bucket is -1.");
    check_hang(buckets, {all, {true, true, false, true, true}, all}, {1, {1}},
               "Rank 1 has nothing for parameter 2: which bucket is that in?");
    check_hang(
        buckets, {all, {true, true, true, true, false}, all}, {0, {1}},
        "Rank 1 has one of the two parameters of bucket 0: a bucket is sent when it is full.");
    check_hang(buckets, {all, all, {false, true, true, true, true}}, {2, {2}},
               "Only rank 2 lacks something, in bucket 2: look at the last bucket and at the last "
               "rank, too.");
    check_hang(
        buckets, {{false, true, true, true, true}, {true, true, false, true, true}, all}, {1, {1}},
        "Rank 0 lacks a parameter of bucket 2, rank 1 one of bucket 1: nobody gets beyond the "
        "first bucket that hangs.");
    check_hang(buckets, {{true, true, false, true, true}, all, {true, true, false, true, true}},
               {1, {0, 2}}, "Two ranks are absent, and both are to be named.");
    check_hang(buckets,
               {{true, true, false, true, true},
                {true, true, false, true, true},
                {true, true, false, true, true}},
               {1, {0, 1, 2}}, "No rank sends bucket 1: it is never sent, on any rank.");
    check_hang(buckets, {all, {true, true, false, true, false}, {true, true, true, false, false}},
               {0, {1, 2}}, "Rank 2 lacks both parameters of bucket 0, rank 1 one of them.");
}

// ---- settle

std::string text(const std::optional<double>& gradient) {
    return gradient ? std::to_string(*gradient) : "no gradient";
}

void check_settled(const Gradients& gradients, const std::vector<std::vector<bool>>& used,
                   const Gradients& right, const std::string& hint) {
    const Gradients yours = settled(gradients, used);
    for (std::size_t rank = 0; rank < right.size(); rank++)
        for (std::size_t p = 0; p < right[rank].size(); p++)
            if (yours.size() != right.size() || yours[rank].size() != right[rank].size() ||
                yours[rank][p] != right[rank][p])
                throw Wrong(
                    "Parameter " + std::to_string(p) + " on rank " + std::to_string(rank) +
                    ": you say " +
                    (yours.size() == right.size() && yours[rank].size() == right[rank].size()
                         ? text(yours[rank][p])
                         : "nothing at all") +
                    "; it is " + text(right[rank][p]) + ".\n" + hint);
}

void check_settle() {
    const std::optional<double> none;
    check_settled({{3, 1}, {6, 2}, {12, 6}}, {{true, true}, {true, true}, {true, true}},
                  {{7, 3}, {7, 3}, {7, 3}}, "All ranks have used everything: these are means.");
    check_settled({{3}, {none}, {12}}, {{true}, {false}, {true}}, {{5}, {5}, {5}},
                  "Rank 1 has not used it: it adds zero, and all ranks get the mean of all ranks.");
    check_settled({{none}, {6}, {none}}, {{false}, {true}, {false}}, {{2}, {2}, {2}},
                  "Rank 1 alone has used it. The map that decides is that of all ranks, an OR over "
                  "them: neither rank 0's own map nor an AND.");
    check_settled({{none}, {none}}, {{false}, {false}}, {{none}, {none}},
                  "Nobody has used it: there is no gradient. An optimizer with momentum would move "
                  "a parameter whose gradient is zero.");
    check_settled({{4}, {9}}, {{false}, {false}}, {{4}, {9}},
                  "Nobody has used it, and old gradients are there: each stays as it was.");
    check_settled({{8}, {none}, {1}}, {{true}, {false}, {false}}, {{3}, {3}, {3}},
                  "Rank 2 has not used it, but has an old gradient, which lies in the bucket.");
    check_settled({{2, 4, none, none}, {none, 6, none, 8}},
                  {{true, false, false, false}, {false, false, false, true}},
                  {{1, 4, none, 4}, {1, 6, none, 4}},
                  "Four parameters, and of each it is asked anew whether any rank has used it: "
                  "nobody has used parameters 1 and 2.");
    check_settled({{0}, {none}}, {{true}, {false}}, {{0}, {0}},
                  "Rank 0 has used it, and its gradient happens to be zero: used is used.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"search", check_search}, {"first_hang", check_first_hang}, {"settle", check_settle}};
}

}  // namespace ddp::test
