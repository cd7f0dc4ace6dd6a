// The chapter's program: its table and its messages are read back.
#include "tests/support/program.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const Program program(RANKS_PROGRAM);

}  // namespace

TEST_CASE("ranks: a table of all ranks, a rank that throws, and a new run") {
    for (const char* how : {"--ranks", "--processes"})
        for (const int ranks : {1, 2, 3}) {
            CAPTURE(how, ranks);
            const ProgramRun run = program.run({how, std::to_string(ranks)});
            REQUIRE(run.count("Who is who") == 1);
            const std::string last = "rank " + std::to_string(ranks - 1);
            REQUIRE(has(run.output, last));
            REQUIRE(has(run.output, ": it has thrown an exception"));
            REQUIRE(has(run.output, "The next run has begun anew, and all " +
                                        std::to_string(ranks) + " ranks have met."));
        }
}

TEST_CASE("ranks: what makes no sense is refused in one sentence") {
    REQUIRE(has(program.refusal({"--link", "1MB/s,1ms"}), "this chapter computes nothing"));
}

}  // namespace ddp::test
