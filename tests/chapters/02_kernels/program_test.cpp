// The chapter's program: its tables are read back.
#include "common/report/csv.hpp"
#include "tests/common/report/temporary_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"

namespace ddp::test {
namespace {

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("kernels: the tree, and five versions beside the limit") {
    const TemporaryFolder folder;
    const std::string csv = (folder / "times.csv").string();
    const ChildResult result =
        run_command({KERNELS_PROGRAM, "--quick", "--elements", "640000", "--csv", csv});
    INFO(result.output);
    REQUIRE(result.exit_code == 0);
    for (const char* part : {"x0+x1  x2+x3  x4+x5  x6+x7", "x0+x4  x1+x5  x2+x6  x3+x7", "x0+x2"})
        REQUIRE(contains(result.output, part));
    const Csv times = read_csv(csv);
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
    const ChildResult few = run_command({KERNELS_PROGRAM, "--elements", "12"});
    REQUIRE(few.exit_code == 2);
    REQUIRE(few.output ==
            "error: --elements needs a whole number from 1024 to 268435456, not '12'.\n");
    REQUIRE(contains(run_command({KERNELS_PROGRAM, "--ranks", "2"}).output,
                     "ranks begin in chapter 05"));
}

}  // namespace ddp::test
