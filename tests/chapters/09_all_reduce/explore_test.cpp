// The protocols of 06_messages to 13_async hold in every order, and none of them without release or
// acquire.
#include "tools/explore/exploration.hpp"

#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using cuda_on_cpu::ExploredFailure;

constexpr double seconds = 30;

}  // namespace

TEST_CASE("no order of flags makes a protocol fail") {
    for (const ExploredCase& explored : explored_cases()) {
        CAPTURE(explored.algorithm, explored.ranks, explored.note);
        const ExploredResult result = explore_case(explored, std::nullopt, seconds);
        REQUIRE(result.failure == "");
        REQUIRE(result.exploration.is_complete);
        REQUIRE(result.exploration.steps >= 4);
        // A server of two workers takes who comes first; flags of several blocks or streams, too.
        const bool has_choice = explored.blocks > 1 || explored.streams > 1 ||
                                (explored.algorithm == "mailboxes" && explored.ranks == 3);
        REQUIRE((result.exploration.executions > 1) == has_choice);
    }
}

TEST_CASE("without release or acquire each protocol fails") {
    for (const ExploredCase& explored : explored_cases())
        for (const auto without : {std::memory_order_release, std::memory_order_acquire}) {
            CAPTURE(explored.algorithm, explored.ranks, explored.note);
            const ExploredResult result = explore_case(explored, without, seconds);
            REQUIRE(result.exploration.failure == ExploredFailure::race);
            REQUIRE_THAT(result.failure, Catch::Matchers::StartsWith("race at rank "));
        }
}

}  // namespace ddp::test
