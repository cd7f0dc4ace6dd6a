// The chapter's program: one hash at four stages, for threads and for processes, and its refusals.
#include <set>

#include "tests/chapters/support/jobs.hpp"
#include "tests/chapters/support/pictures.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const Program program(SHARDED_PROGRAM);

}  // namespace

TEST_CASE("sharded program: four stages, one hash, the same for threads and for processes") {
    const Pictures data(120, 20);
    std::string of_threads;
    for (const std::string how : {"--ranks", "--processes"}) {
        if (how == "--processes" && !processes_can_run_kernels(3))
            continue;
        const ProgramRun run =
            program.run({"--data", data.folder(), "--quick", "--batch", "8", how, "3"});
        REQUIRE(run.count("All stages end in the same bits.") == 1);
        REQUIRE(run.csv.rows.size() == 4);
        // Each stage keeps less than the one before.
        for (const char* column : {"parameters", "gradients", "moments"})
            REQUIRE(run.csv.number(3, column) < run.csv.number(0, column));
        if (how == "--ranks")
            of_threads = run.output;
        REQUIRE(run.output == of_threads);
    }
    REQUIRE(nothing_is_left(SHARDED_PROGRAM));
}

TEST_CASE("sharded program: the hybrid ends in the bits of DDP on two levels, and not on one") {
    const Pictures data(120, 20);
    const Words words{"--data", data.folder(), "--quick", "--batch",
                      "8",      "--hybrid",    "--shape", "3x2"};
    const ProgramRun run = program.run(words);
    REQUIRE(run.count("on two levels, 3 nodes of 2 ranks") == 1);
    REQUIRE(run.count("Both end in the same bits.") == 1);
    REQUIRE(run.csv.rows.size() == 2);
    REQUIRE(program.run(words + Words{"--levels", "1"}).count("Their bits differ") == 1);
}

TEST_CASE("sharded program: bad input in one sentence") {
    REQUIRE(count(program.refusal({"--trace", "x.json"}), "a step is in 15_overlap") == 1);
    REQUIRE(count(program.refusal({"--shape", "2x3", "--ranks", "4"}),
                  "has 6 ranks, and there are 4") == 1);
    REQUIRE(count(program.refusal({"--data", "/nonexistent"}, 1), "was not found") == 1);
}

}  // namespace ddp::test
