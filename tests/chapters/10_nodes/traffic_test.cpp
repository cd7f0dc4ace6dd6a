// Where ranks are, the order of a ring through them, and the bytes that leave a node.
#include "10_nodes/traffic.hpp"
#include "05_ranks/support/interfaces.hpp"
#include "common/report/options.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

Job job_of(const std::string& nodes) {
    Job job;
    for (const char node : nodes)
        job.members.push_back({std::string(1, node), 0, 0, 1});
    return job;
}

Placement placement(const std::string& nodes, int rank = 0) {
    const Job job = job_of(nodes);
    return placement_of(Group::all(job), job, rank, std::nullopt);
}

}  // namespace

TEST_CASE("a ring goes node by node, however ranks were dealt out") {
    using Indices = std::vector<int>;
    REQUIRE(placement("aabb").by_node == Indices{0, 1, 2, 3});
    REQUIRE(placement("ababab").by_node == Indices{0, 2, 4, 1, 3, 5});
    REQUIRE(placement("bcab").by_node == Indices{0, 3, 1, 2});
    REQUIRE(placement("ababab").sizes == Indices{3, 3});
    REQUIRE(placement("ababab", 3).position == 4);
    REQUIRE(placement("bcab").sizes == Indices{2, 1, 1});
    REQUIRE(placement("ababab").text() == "2 nodes of 3 ranks");
    REQUIRE(placement("ab").text() == "2 nodes of 1 rank");
    REQUIRE(placement("bcab").text() == "nodes of 2, 1 and 1 rank");
}

TEST_CASE("the placement of a group counts its own members, in their order") {
    const Job job = job_of("aabbab");
    const Placement some = placement_of(Group({5, 4, 0, 2}), job, 2, std::nullopt);
    REQUIRE(some.by_node == std::vector<int>{0, 3, 1, 2});  // ranks 5, 2 on b and 4, 0 on a
    REQUIRE(some.sizes == std::vector<int>{2, 2});
    REQUIRE(some.position == 1);
}

TEST_CASE("a shape pretends nodes of consecutive ranks") {
    const Job job = job_of("aaaaaa");
    const Placement shaped = placement_of(Group::all(job), job, 5, NodeShape{3, 2});
    REQUIRE(shaped.sizes == std::vector<int>{2, 2, 2});
    REQUIRE(shaped.position == 5);
    REQUIRE(uses_two_levels(shaped, 2));
    REQUIRE(!uses_two_levels(shaped, 1));
    REQUIRE(!uses_two_levels(placement("aab"), 2));  // uneven
    REQUIRE(!uses_two_levels(placement("abc"), 2));  // one rank each
    REQUIRE(!uses_two_levels(placement("aaa"), 2));  // one node
}

TEST_CASE("a group that mixes the nodes of a shape is refused") {
    const Job job = job_of("aaaa");
    const auto shaped = [&](std::vector<int> ranks) {
        return placement_of(Group(std::move(ranks)), job, 0, NodeShape{2, 2});
    };
    REQUIRE(shaped({0, 1, 3}).sizes == std::vector<int>{2, 1});
    REQUIRE(shaped({2, 3, 0, 1}).by_node == std::vector<int>{0, 1, 2, 3});
    REQUIRE_THROWS_AS(shaped({0, 2, 1, 3}), OptionError);
}

TEST_CASE("bytes that leave a node, round one ring and on two levels") {
    const auto leaving = [](const std::string& nodes, int levels) {
        return bytes_leaving_node(placement(nodes), levels, 1000);
    };
    REQUIRE(leaving("ab", 1) == 1000);
    REQUIRE(leaving("ab", 2) == 1000);
    REQUIRE(leaving("aabb", 1) == 1500);
    REQUIRE(leaving("aabb", 2) == 1000);
    REQUIRE(leaving("abab", 1) == 1500);
    REQUIRE(leaving("aabbccdd", 1) == 1750);
    REQUIRE(leaving("aabbccdd", 2) == 1500);
    REQUIRE(leaving("aabb", 1) == leaving("aaab", 2));  // uneven nodes take one ring
    REQUIRE(leaving("aaaa", 1) == 0);
}

TEST_CASE("the interface that has sent most") {
    const SentBytes before{{"eth0", 100}, {"ib0", 7}},
        after{{"eth0", 110}, {"ib0", 5007}, {"x", 4}};
    REQUIRE(max_between(before, after).interface == "ib0");
    REQUIRE(max_between(before, after).bytes == 5000);
    REQUIRE(max_between(after, after).interface.empty());
    REQUIRE(sent_bytes().count("lo") == 0);
}

}  // namespace ddp::test
