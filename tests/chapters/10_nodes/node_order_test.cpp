// The options --shape and --levels, and shapes that a job cannot have.
#include "10_nodes/placement.hpp"
#include "tests/chapters/10_nodes/thread_transport.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

struct Asked {
    AllReduceOrder order;
    CommonOptions common;
};

Asked parse(std::vector<const char*> words) {
    Asked asked;
    Options parser("nodes", "A program with nodes.");
    asked.order.add_to(parser);
    words.insert(words.begin(), "nodes");
    asked.common = parser.parse(static_cast<int>(words.size()), words.data());
    return asked;
}

}  // namespace

TEST_CASE("a shape is nodes and ranks of each, and says how many ranks there are") {
    REQUIRE(!parse({}).order.shape);
    REQUIRE(parse({}).order.levels == 2);
    REQUIRE(parse({}).common.default_ranks == 4);
    const Asked given = parse({"--shape", "16x4", "--levels", "1"});
    REQUIRE(given.order.shape->nodes == 16);
    REQUIRE(given.order.shape->ranks_per_node == 4);
    REQUIRE(given.order.shape->text() == "16x4");
    REQUIRE(given.order.levels == 1);
    REQUIRE(given.common.default_ranks == 64);
    for (const char* wrong : {"", "4", "x", "4x", "x2", "0x2", "2x0", "13x5", "2x2x2", "-1x-4"})
        REQUIRE_THROWS_WITH(parse({"--shape", wrong}),
                            "--shape needs NODESxRANKS such as 4x2, and at most 64 ranks in all, "
                            "not '" +
                                std::string(wrong) + "'.");
}

// By the program, or at the latest by whoever makes a communicator.
TEST_CASE("a shape that a job cannot have is refused") {
    const NodeShape shape{2, 2};
    const Job several = job_on({"a", "a", "b", "b"}), three = job_on({"a", "a", "a"});
    const auto placed = [&](const Job& job) { placement_of(Group::all(job), job, 0, shape); };
    const std::string real =
        "--shape simulates nodes on one machine, and these ranks are on several: leave it out.";
    const std::string other =
        "--shape 2x2 has 4 ranks, and there are 3: take another shape, or as many ranks.";
    REQUIRE_THROWS_WITH((AllReduceOrder{2, shape}.require(several)), real);
    REQUIRE_THROWS_WITH((AllReduceOrder{2, shape}.require(three)), other);
    REQUIRE_THROWS_WITH(placed(several), real);
    REQUIRE_THROWS_WITH(placed(three), other);
    AllReduceOrder{2, shape}.require(job_on({"a", "a", "a", "a"}));
    AllReduceOrder{}.require(three);
}

}  // namespace ddp::test
