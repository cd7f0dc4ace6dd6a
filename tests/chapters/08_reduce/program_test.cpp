// The chapter's program: its tables are read back.
#include <cmath>

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

TEST_CASE(
    "reduce: every order is compared with the exact sum, and the tree across ranks is measured") {
    const TemporaryFolder folder;
    const std::string csv = (folder / "orders.csv").string();
    const ChildResult result = run_command({REDUCE_PROGRAM, "--quick", "--csv", csv});
    INFO(result.output);
    REQUIRE(result.exit_code == 0);
    for (const char* part : {"1,000,003 floats", "forward", "exact, in double",
                             "((x0+x1)+(x2+x3))+((x4+x5)+(x6+x7))", "15.0 s"})
        REQUIRE(contains(result.output, part));
    const Csv orders = read_csv(csv);
    REQUIRE(orders.rows.size() == 9);
    REQUIRE(orders.text(0, "order") == "forward");
    REQUIRE(orders.text(8, "order") == "kernel, lanes");
    const auto error = [&](std::size_t row) { return std::abs(orders.number(row, "last_places")); };
    // Half a million has its last place at 1 / 32.
    REQUIRE(orders.number(0, "last_places") - orders.number(2, "last_places") ==
            Approx(32 * (orders.number(0, "sum") - orders.number(2, "sum"))));
    REQUIRE(error(0) > 20);  // a million roundings
    for (const std::size_t tree : {2, 3, 5, 6, 7, 8}) {
        CAPTURE(orders.text(tree, "order"));
        REQUIRE(error(tree) < 3);
    }
}

TEST_CASE("reduce: across processes only rank 0 prints") {
    const ChildResult result = run_command({REDUCE_PROGRAM, "--quick", "--processes", "3"});
    INFO(result.output);
    REQUIRE(result.exit_code == 0);
    REQUIRE(contains(result.output, "(x0+x1)+x2"));
    REQUIRE(result.output.find("1,000,003 floats") == result.output.rfind("1,000,003 floats"));
}

TEST_CASE("reduce: what makes no sense is refused in one sentence") {
    const ChildResult link = run_command({REDUCE_PROGRAM, "--link", "1MB/s,1ms"});
    REQUIRE(link.exit_code == 2);
    REQUIRE(contains(link.output, "the sum across ranks has a link of its own here"));
}

}  // namespace ddp::test
