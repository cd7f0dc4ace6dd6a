// The chapter's program: what it says, for threads and for processes.
#include <regex>

#include "common/report/csv.hpp"
#include "tests/chapters/support/jobs.hpp"
#include "tests/common/report/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {

TEST_CASE("sync_batch_norm: who sees what, the equality, both trainings, and the cost") {
    const TemporaryFolder folder;
    const std::string csv = (folder / "curve.csv").string();
    const std::pair<const char*, int> ways[] = {
        {"--ranks", 1}, {"--ranks", 3}, {"--ranks", 8}, {"--processes", 3}};
    std::string curve_of_threads;
    for (const auto& [how, ranks] : ways) {
        CAPTURE(how, ranks);
        const ChildResult run = run_command(
            {SYNC_BATCH_NORM_PROGRAM, "--quick", how, std::to_string(ranks), "--csv", csv});
        CAPTURE(run.output);
        REQUIRE(run.exit_code == 0);
        REQUIRE(count(run.output, "one has none") == 1);
        REQUIRE(count(run.output, "  cats ") == (ranks + 2) / 3);
        const std::string cost = ranks == 1 ? "0 collectives, with 0 bytes from each rank"
                                            : "4 collectives, with 392 bytes from each rank";
        REQUIRE(count(run.output, cost) == 1);
        std::istringstream lines(run.output);
        for (std::string line; std::getline(lines, line);)
            REQUIRE(line.size() <= 300);  // in bytes: lines are drawn of three each
        const Csv curve = read_csv(csv);
        REQUIRE(curve.rows.size() == 2);
        if (ranks == 1)
            for (const char* part : {"train", "test"})
                REQUIRE(curve.text(1, std::string("batch_norm_") + part) ==
                        curve.text(1, std::string("sync_batch_norm_") + part));
        std::string all;
        for (const auto& row : curve.rows)
            for (const std::string& cell : row)
                all += cell + " ";
        if (std::string(how) == "--processes")
            REQUIRE(all == curve_of_threads);
        if (ranks == 3)
            curve_of_threads = all;
    }
    REQUIRE(nothing_is_left(SYNC_BATCH_NORM_PROGRAM));
}

TEST_CASE("sync_batch_norm: with a class on each rank, only SyncBatchNorm holds in the test") {
    const TemporaryFolder folder;
    const std::string csv = (folder / "curve.csv").string();
    const ChildResult run =
        run_command({SYNC_BATCH_NORM_PROGRAM, "--ranks", "3", "--epochs", "4", "--csv", csv});
    CAPTURE(run.output);
    REQUIRE(run.exit_code == 0);
    const Csv curve = read_csv(csv);
    REQUIRE(curve.number(3, "batch_norm_train") > 0.9);
    REQUIRE(curve.number(3, "batch_norm_test") < 0.7);
    REQUIRE(curve.number(3, "sync_batch_norm_train") > 0.9);
    REQUIRE(curve.number(3, "sync_batch_norm_test") > 0.9);
}

TEST_CASE("sync_batch_norm: bad input in one sentence") {
    const ChildResult small = run_command({SYNC_BATCH_NORM_PROGRAM, "--batch", "1"});
    REQUIRE(small.exit_code == 2);
    REQUIRE(small.output == "error: --batch needs a whole number from 2 to 64, not '1'.\n");
    const ChildResult data = run_command({SYNC_BATCH_NORM_PROGRAM, "--data", "/tmp"});
    REQUIRE(data.exit_code == 2);
    REQUIRE(count(data.output, "the pictures are drawn") == 1);
}

}  // namespace ddp::test
