// The chapter's program: its tables are read back.
#include <cmath>

#include "tests/chapters/support/jobs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

namespace ddp::test {
namespace {

const Program reduce(REDUCE_PROGRAM);

}  // namespace

TEST_CASE(
    "reduce: every order is compared with the exact sum, and the tree across ranks is measured") {
    const ProgramRun run = reduce.run({"--quick"});
    for (const char* part : {"1,000,003 floats", "forward", "exact, in double",
                             "((x0+x1)+(x2+x3))+((x4+x5)+(x6+x7))", "15.0 s"})
        REQUIRE(has(run.output, part));
    // 1 sends to 0 and 3 to 2, then 2 to 0. The program compares this with what the ranks have.
    const auto row = [&](const std::string& name) {
        return words_of(table_row(run.output, name, "Who holds what in the tree"));
    };
    REQUIRE(row("begin ") == Words{"0", "1", "2", "3"});
    REQUIRE(row("1 ") == Words{"01", ".", "23", ".", "1→0", "3→2"});
    REQUIRE(row("2 ") == Words{"0123", ".", ".", ".", "2→0"});
    const Csv& orders = run.csv;
    REQUIRE(orders.rows.size() == 9);
    REQUIRE(orders.text(0, "order") == "forward");
    REQUIRE(orders.text(8, "order") == "kernel, accumulators");
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
    if (!processes_can_run_kernels(3))
        return;
    const ProgramRun run = reduce.run({"--quick", "--processes", "3"});
    REQUIRE(has(run.output, "(x0+x1)+x2"));
    REQUIRE(run.count("Who holds what in the tree, on 3 ranks") == 1);
    REQUIRE(words_of(table_row(run.output, "2 ", "Who holds what")) ==
            Words{"012", ".", ".", "2→0"});
    REQUIRE(run.count("1,000,003 floats") == 1);
}

TEST_CASE("reduce: what makes no sense is refused in one sentence") {
    REQUIRE(has(reduce.refusal({"--link", "1MB/s,1ms"}),
                "the sum across ranks has a link of its own here"));
}

}  // namespace ddp::test
