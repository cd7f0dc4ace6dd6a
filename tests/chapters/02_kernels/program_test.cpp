// The chapter's program: its tables are read back.
#include "tests/support/program.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const Program kernels(KERNELS_PROGRAM);

}  // namespace

TEST_CASE("kernels: the tree, and five versions beside the limit") {
    const ProgramRun run = kernels.run({"--quick", "--elements", "640000"});
    for (const char* part : {"x0+x1  x2+x3  x4+x5  x6+x7", "x0+x4  x1+x5  x2+x6  x3+x7", "x0+x2"})
        REQUIRE(has(run.output, part));
    const Csv& times = run.csv;
    REQUIRE(times.rows.size() == 6);
    REQUIRE(times.text(0, "version") == "atomics");
    REQUIRE(times.number(0, "elements") == 10'000);
    REQUIRE(times.text(4, "version") == "lanes");
    REQUIRE(times.number(4, "elements") == 640'000);
    REQUIRE(times.number(4, "gbs") ==
            Approx(4e-3 * 640'000 / times.number(4, "median_us")).epsilon(1e-9));
    REQUIRE(times.text(5, "version") == "limit");
    REQUIRE(times.number(5, "share_of_limit") == 1);
}

TEST_CASE("kernels: what makes no sense is refused in one sentence") {
    REQUIRE(kernels.refusal({"--elements", "12"}) ==
            "error: --elements needs a whole number from 1024 to 268435456, not '12'.\n");
    REQUIRE(has(kernels.refusal({"--ranks", "2"}), "ranks begin in chapter 05"));
}

}  // namespace ddp::test
