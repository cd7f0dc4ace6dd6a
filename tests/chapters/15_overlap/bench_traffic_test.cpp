// The tables of what is sent in a step, and the file of the hooks.
#include "tests/chapters/support/jobs.hpp"
#include "tests/chapters/support/pictures.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const Program traffic(BENCH_TRAFFIC);

}  // namespace

TEST_CASE("bench traffic: three orders, three tables, and a row of each hook in the file",
          "[.long]") {
    const Pictures data(600, 110);
    const ProgramRun run = traffic.run({"--data", data.folder()});
    for (const char* part : {"all ranks must do the same, in the same order",
                             "is right to the last digits", "float16, divided after",
                             "Bucket hooks: 60 steps", "forward and backward      3            3 "})
        REQUIRE(run.count(part) == 1);
    REQUIRE(run.csv.rows.size() == 6);
}

TEST_CASE("bench traffic: fewer pictures than its batches take, and ranks that are processes") {
    const Pictures data(7, 4);
    for (const char* how : {"--ranks", "--processes"})
        if (how == std::string("--ranks") || processes_can_run_kernels(3))
            traffic.run({"--data", data.folder(), how, "3", "--quick"});
    REQUIRE(nothing_is_left(BENCH_TRAFFIC));
}

}  // namespace ddp::test
