// The exercise used_map, beside what can be counted by hand.
#include "exercises/17_unused_parameters/used_map.hpp"

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

Graph layers(int count) {
    Graph graph{{{}, 0}, {{}, 1}};
    for (int layer = 0; layer < count; layer++)
        graph.push_back({{layer + 1, layer + 1}});
    return graph;
}

void check_search() {
    check_reached({{{}, 0}, {{0}}, {{1}}}, {2}, {true},
                  "A chain of three nodes. Do you go from the last node to the first?");
    check_reached({{{}, 0}, {{}, 1}, {{0, 1}}}, {2}, {true, true},
                  "An operation with two inputs. Both count.");
    // Parameters 0, 1, 2 and operations with one each: 3 on 0; 4 on 1 and 3; 5 on 2 and 3.
    Graph graph{{{}, 0}, {{}, 1}, {{}, 2}, {{0}}, {{1, 3}}, {{2, 3}}};
    check_reached(graph, {4}, {true, true, false},
                  "Two branches. The output comes from one of them.");
    for (const std::vector<int>& both : {std::vector<int>{4, 5}, std::vector<int>{5, 4}})
        check_reached(graph, both, {true, true, true},
                      "The outputs " + text(both) + ". The loss uses both.");
    graph[3].is_detached = true;
    check_reached(graph, {4, 5}, {false, true, true},
                  "Operation 3 is detached. Backward comes to it, and goes no farther.");
    check_reached(graph, {}, {false, false, false}, "No output, so nothing is reached.");
    // Parameter 1, a constant, parameter 0, an operation with all three, parameter 2.
    check_reached({{{}, 1}, {}, {{}, 0}, {{1, 0, 2}}, {{}, 2}, {{3, 4}}}, {3},
                  {true, true, false, false},
                  "Node 0 is parameter 1, node 2 is parameter 0, and parameter 3 isn't in "
                  "the graph. GraphNode::parameter says so.");
    check_reached(layers(1000), {1001}, {false, true},
                  "1000 layers, 2 paths into each: 2^1000 paths. Visit each node once.");
}

// ---- first_hang

void check_hang(const std::vector<std::vector<int>>& buckets,
                const std::vector<std::vector<bool>>& reached, const Hang& right,
                const std::string& hint) {
    const Hang yours = first_hang(buckets, reached);
    if (yours != right)
        throw Wrong("You say bucket " + std::to_string(yours.bucket) + ", and the absent ranks " +
                    text(yours.absent) + "; right is bucket " + std::to_string(right.bucket) +
                    ", and the ranks " + text(right.absent) + ".\n" + hint);
}

void check_first_hang() {
    const std::vector<std::vector<int>> buckets{{3, 4}, {2}, {0, 1}};
    const std::vector<bool> all(5, true);
    check_hang(buckets, {all, {true, true, false, true, true}, all}, {1, {1}},
               "Rank 1 lacks parameter 2. In which bucket is that?");
    check_hang(buckets, {all, all, all}, {}, "No rank waits, so the bucket is -1.");
    check_hang(buckets, {all, {true, true, true, true, false}, all}, {0, {1}},
               "Rank 1 has one of two parameters. A bucket is sent when it is full.");
    check_hang(buckets, {{false, true, true, true, true}, {true, true, false, true, true}, all},
               {1, {1}}, "Buckets 2 and 1. No rank gets beyond the first bucket that hangs.");
    check_hang(buckets, {{true, true, false, true, true}, all, {true, true, false, true, true}},
               {1, {0, 2}}, "Two ranks are absent. Name both.");
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
            if (yours.size() != right.size() || yours[rank].size() != right[rank].size())
                throw Wrong("You should return as many gradients as you are given.\n" + hint);
            else if (yours[rank][p] != right[rank][p])
                throw Wrong("Parameter " + std::to_string(p) + " on rank " + std::to_string(rank) +
                            ": you say " + text(yours[rank][p]) + "; right is " +
                            text(right[rank][p]) + ".\n" + hint);
}

void check_settle() {
    const std::optional<double> none;
    check_settled({{3, 1}, {6, 2}, {12, 6}}, {{true, true}, {true, true}, {true, true}},
                  {{7, 3}, {7, 3}, {7, 3}}, "All ranks have used everything. These are means.");
    check_settled({{3}, {none}, {12}}, {{true}, {false}, {true}}, {{5}, {5}, {5}},
                  "Rank 1 has not used it. It adds zero, and all ranks get the mean.");
    check_settled({{none}, {6}, {none}}, {{false}, {true}, {false}}, {{2}, {2}, {2}},
                  "What decides is an OR over all ranks, and not rank 0's own map.");
    check_settled({{none}, {none}}, {{false}, {false}}, {{none}, {none}},
                  "No rank has used it. An optimizer with momentum would move a parameter "
                  "whose gradient is zero, so it has to stay absent.");
    check_settled({{8}, {none}, {1}}, {{true}, {false}, {false}}, {{3}, {3}, {3}},
                  "Rank 2 has not used it, but its old gradient is in the bucket.");
    check_settled({{2, 4, none, none}, {none, 6, none, 8}},
                  {{true, false, false, false}, {false, false, false, true}},
                  {{1, 4, none, 4}, {1, 6, none, 4}},
                  "Four parameters. No rank has used parameters 1 and 2.");
    check_settled({{0}, {none}}, {{true}, {false}}, {{0}, {0}},
                  "Rank 0 has used it, and its gradient is zero. Used is used.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"search", check_search}, {"first_hang", check_first_hang}, {"settle", check_settle}};
}

}  // namespace ddp::test
