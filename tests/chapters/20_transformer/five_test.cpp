// The program with five mistakes makes them, and the mended one does not.
#include "20_transformer/show/five_report.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

FiveEvidence seen_of(FiveSeen (*train)(Rank&, const FivePlan&)) {
    FiveEvidence evidence;
    World world(thread_options(3));
    FivePlan plan = five_plan(world, true);
    plan.epochs = 2;
    world.run([&](Rank& rank) {
        const FiveEvidence found = evidence_of(rank, plan, train(rank, plan));
        if (rank.rank() == 0)
            evidence = found;
    });
    return evidence;
}

}  // namespace

TEST_CASE("find five: each mistake shows in a number, and none in the mended program") {
    const FiveEvidence wrong = seen_of(train_with_five_mistakes), right = seen_of(train_mended);
    REQUIRE(wrong.different_replicas == 3);
    REQUIRE(right.different_replicas == 1);
    REQUIRE(wrong.drift > 0.01);
    REQUIRE(right.drift == 0);
    REQUIRE(wrong.same_order == 1);
    REQUIRE(right.same_order < 0.3);
    REQUIRE(wrong.leaked > 0);
    REQUIRE(right.leaked == 0);
    REQUIRE(wrong.validated == right.validated);
    // Each run draws other splits. In one of a hundred, rank 0's loss is near the mean by chance.
    const auto is_of_one_rank = [](const FiveEvidence& seen) {
        return std::abs(seen.logged_loss - seen.loss) > 2e-4;
    };
    REQUIRE((is_of_one_rank(wrong) || is_of_one_rank(seen_of(train_with_five_mistakes)) ||
             is_of_one_rank(seen_of(train_with_five_mistakes))));
    REQUIRE(std::abs(right.logged_loss - right.loss) < 1e-4);
    REQUIRE(wrong.waiting > 0);
    REQUIRE(right.waiting == 0);
}

}  // namespace ddp::test
