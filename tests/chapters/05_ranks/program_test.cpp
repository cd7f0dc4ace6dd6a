// The chapter's program: its table and its sentences are read back.
#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"

namespace ddp::test {
namespace {

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("ranks: who is who, a rank that throws, and a new run") {
    for (const char* how : {"--ranks", "--processes"})
        for (const int ranks : {1, 2, 3}) {
            const ChildResult run = run_command({RANKS_PROGRAM, how, std::to_string(ranks)});
            CAPTURE(how, ranks, run.output);
            REQUIRE(run.exit_code == 0);
            REQUIRE(run.output.find("Who is who") == run.output.rfind("Who is who"));
            const std::string last = "rank " + std::to_string(ranks - 1);
            REQUIRE(contains(run.output, last));
            REQUIRE(contains(run.output, ": it has thrown an exception"));
            REQUIRE(contains(run.output, "The next run has begun anew, and all " +
                                             std::to_string(ranks) + " ranks have met."));
        }
}

TEST_CASE("ranks: what makes no sense is refused in one sentence") {
    const ChildResult link = run_command({RANKS_PROGRAM, "--link", "1MB/s,1ms"});
    REQUIRE(link.exit_code == 2);
    REQUIRE(contains(link.output, "this chapter computes nothing"));
}

}  // namespace ddp::test
