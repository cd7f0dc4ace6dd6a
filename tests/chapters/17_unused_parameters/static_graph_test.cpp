// static_graph: the first step decides.
#include "tests/chapters/17_unused_parameters/paths.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

constexpr auto once = Walker::Search::once;

// Returns the branches of a step, the same in every step; no rank takes c.
std::string fixed_branches(int, int rank) {
    return rank % 2 == 0 ? "ab" : "a";
}

}  // namespace

TEST_CASE("static_graph: ranks that always take their own branches learn what one rank learns") {
    for (const int ranks : {1, 2, 3, 4}) {
        World world(thread_options(ranks));
        CAPTURE(ranks);
        REQUIRE(difference_from_walking_alone(world, once, 5, fixed_branches) == "");
    }
}

TEST_CASE("static_graph: the first step is one bucket, sent at its end; the others are rebuilt") {
    World world(thread_options(3));
    std::vector<std::size_t> in_first(3), in_second(3);
    std::vector<std::string> plans(3);
    std::vector<int> has_b(3), has_c(3);  // not of bool: its elements share bytes
    world.run([&](Rank& rank) {
        const auto place = static_cast<std::size_t>(rank.rank());
        Walker walker(rank, once, 300);
        const auto branches = fixed_branches(0, rank.rank());
        walker.step(branches, 0);
        in_first[place] = walker.sent.size();
        walker.step(branches, 1);
        in_second[place] = walker.sent.size() - in_first[place];
        walker.backward(branches, 2);
        walker.synchronize();
        has_b[place] = walker.parameter("b.bias").has_gradient();
        has_c[place] = walker.parameter("c.bias").has_gradient();
        plans[place] = encode_plan(walker.ddp.gradients().plan());
    });
    REQUIRE(in_first == std::vector<std::size_t>{1, 1, 1});
    REQUIRE(in_second[0] > 2);
    REQUIRE(in_second[1] == in_second[0]);
    REQUIRE(plans[1] == plans[0]);
    REQUIRE(plans[2] == plans[0]);
    REQUIRE(has_b == std::vector{1, 1, 1});
    REQUIRE(has_c == std::vector{0, 0, 0});
}

TEST_CASE("static_graph: a graph that changes is refused by name") {
    World world(thread_options(2));
    const auto change = [&](const std::string& from, const std::string& to) {
        return failure_of(world, [&](Rank& rank) {
            Walker walker(rank, once);
            walker.step(from, 0);
            walker.step(from, 1);
            walker.step(rank.rank() == 1 ? to : from, 2);
            walker.synchronize();
        });
    };
    REQUIRE(change("ab", "a") ==
            "rank 1: the graph has changed: no gradient for b.weight, b.bias, tied.weight, "
            "tied.bias, which had one in the first step; a graph that changes needs FindUnused");
    const std::string more = change("a", "ac");
    REQUIRE(has(more, "rank 1: the graph has changed: '"));
    REQUIRE(has(more, "' has a gradient, and had none in the first step"));
    REQUIRE(change("ac", "ac") == "");
}

// PyTorch does not notice this: its gradients then differ from rank to rank.
TEST_CASE("static_graph: a loss of another part of the output is refused by name") {
    World world(thread_options(2));
    const auto change = [&](bool leaves_out_head_first) {
        return failure_of(world, [&](Rank& rank) {
            Walker walker(rank, once);
            for (const bool is_first : {true, false}) {
                Variable loss = walker.forward("abc", 0);
                if (is_first == leaves_out_head_first)
                    loss = weighted_sum(walker.model.before_head, std::vector<float>(15, 1));
                walker.ddp.backward(loss);
                walker.clear();
            }
            walker.synchronize();
        });
    };
    REQUIRE(has(change(false),
                "the graph has changed: no gradient for head.weight, head.bias, "
                "which had one in the first step"));
    REQUIRE(has(change(true), "the graph has changed: 'head."));
}

}  // namespace ddp::test
