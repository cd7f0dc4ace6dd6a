// The chapter's program: what it prints and writes, for threads and for processes.
#include "tests/support/program.hpp"
#include "tests/chapters/support/jobs.hpp"
#include "tests/chapters/support/pictures.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const Program sampler(SAMPLER_PROGRAM);

}  // namespace

TEST_CASE("sampler: samples seen, and a hang that is explained") {
    const Pictures data(96, 100);
    const std::pair<const char*, int> starts[] = {
        {"--ranks", 1}, {"--ranks", 3}, {"--ranks", 8}, {"--processes", 3}};
    for (const auto& [how, ranks] : starts) {
        if (std::string(how) == "--processes" && !processes_can_run_kernels(ranks))
            continue;
        CAPTURE(how, ranks);
        const ProgramRun run = sampler.run(
            {"--quick", how, std::to_string(ranks), "--data", data.folder(), "--batch", "4"});
        const Csv& file = run.csv;
        REQUIRE(file.rows.size() == 3);
        REQUIRE(file.number(0, "seen") == 96);
        REQUIRE(file.number(0, "missed") == 0);
        REQUIRE(file.number(0, "steps") == (96 / ranks + 3) / 4);
        REQUIRE(file.number(1, "steps") == 24);
        REQUIRE(file.number(1, "twice") == (ranks == 1 ? 0 : 96));
        REQUIRE((file.number(2, "missed") > 0) == (ranks > 1));
        REQUIRE(run.count("The average of all is 11.5, that of 0 to 23.") == 1);
        REQUIRE(run.count(" samples do not divide by ") == (ranks == 1 ? 0 : 1));
        // Without a sampler all ranks have the same gradients, and their mean is a gradient again,
        // except for the rounding of 3 a, 5 a, 6 a and 7 a on the way to a sum.
        const Words difference =
            matches(run.output, "trained alone: parameters\\ndiffer by at most ([0-9.e-]+)\\.\n");
        REQUIRE(difference.size() == 1);
        REQUIRE(std::stod(difference[0]) <= (ranks == 1 ? 0 : 1e-5));
        REQUIRE(run.count("Eight updates of rank 0") == 1);
        REQUIRE(run.count("Rank 0 has one batch more than the others") == (ranks == 1 ? 0 : 1));
        REQUIRE(run.count(
                    "in operation 4, all_reduce average of 1000 float (\"gradients of batch 4\"); "
                    "rank") == (ranks == 1 ? 0 : 1));
    }
}

TEST_CASE("sampler: bad input in one sentence") {
    REQUIRE(sampler.refusal({"--batch", "0"}) ==
            "error: --batch needs a whole number from 1 to 256, not '0'.\n");
}

}  // namespace ddp::test
