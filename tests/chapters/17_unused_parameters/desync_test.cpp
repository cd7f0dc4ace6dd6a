// The desync report: it finds from the ranks' records which rank waits for which.
#include "17_unused_parameters/desync.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("desync: a rank that is ahead waits in the first bucket that some have not sent") {
    REQUIRE(desync_report({{3, 4, 4, "", "is at the end"},
                           {3, 4, 2, "b.weight, b.bias", "went on"},
                           {3, 4, 3, "", ""}}) ==
            Lines{"rank 0 waits in bucket 2 of step 3 for rank 1",
                  "rank 1 never sent bucket 2 of step 3: no gradient for b.weight, b.bias; it went "
                  "on",
                  "rank 2 waits in bucket 2 of step 3 for rank 1"});
}

TEST_CASE("desync: a rank that has sent all of a step lacks the first bucket of the next") {
    REQUIRE(desync_report({{5, 2, 2, "", ""},
                           {3, 2, 2, "", "has no batch left"},
                           {4, 2, 0, "", ""},
                           {3, 2, 2, "", ""}}) ==
            Lines{"rank 0 waits in bucket 0 of step 4 for ranks 1, 2, 3",
                  "rank 1 has not reached bucket 0 of step 4; it has no batch left",
                  "rank 2 has not reached bucket 0 of step 4",
                  "rank 3 has not reached bucket 0 of step 4"});
}

TEST_CASE("desync: every rank gets the records of all, with any texts") {
    World world(thread_options(3));
    const std::vector<StepState> states{
        {1, 2, 1, "", ""}, {7, 1, 0, "a b, c", ""}, {2, 3, 3, "", "x y"}};
    std::vector<std::vector<StepState>> gathered(3);
    world.run([&](Rank& rank) {
        const auto place = static_cast<std::size_t>(rank.rank());
        gathered[place] = gather(rank, states[place]);
    });
    for (const auto& all : gathered)
        REQUIRE(all == states);
}

}  // namespace ddp::test
