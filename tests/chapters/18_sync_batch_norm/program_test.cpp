// The chapter's program: what it prints and writes, for threads and for processes.
#include "tests/chapters/support/jobs.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const Program program(SYNC_BATCH_NORM_PROGRAM);

}  // namespace

TEST_CASE("sync_batch_norm: the classes of each rank, both training runs, the cost") {
    const std::pair<const char*, int> starts[] = {
        {"--ranks", 1}, {"--ranks", 3}, {"--ranks", 8}, {"--processes", 3}};
    std::string curve_of_threads;
    for (const auto& [how, ranks] : starts) {
        if (std::string(how) == "--processes" && !processes_can_run_kernels(ranks))
            continue;
        CAPTURE(how, ranks);
        const ProgramRun run = program.run({"--quick", how, std::to_string(ranks)});
        REQUIRE(run.count("  cats ") == (ranks + 2) / 3);
        const std::string cost = ranks == 1 ? "0 collectives, with 0 bytes from each rank"
                                            : "4 collectives, with 392 bytes from each rank";
        REQUIRE(run.count(cost) == 1);
        std::istringstream lines(run.output);
        for (std::string line; std::getline(lines, line);)
            REQUIRE(line.size() <= 300);  // in bytes: lines are drawn of three each
        const Csv& curve = run.csv;
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

TEST_CASE("sync_batch_norm: with one class per rank, only SyncBatchNorm passes the test") {
    const ProgramRun run = program.run({"--ranks", "3", "--epochs", "4"});
    const Csv& curve = run.csv;
    REQUIRE(curve.number(3, "batch_norm_train") > 0.9);
    REQUIRE(curve.number(3, "batch_norm_test") < 0.7);
    REQUIRE(curve.number(3, "sync_batch_norm_train") > 0.9);
    REQUIRE(curve.number(3, "sync_batch_norm_test") > 0.9);
}

TEST_CASE("sync_batch_norm: bad input in one sentence") {
    REQUIRE(program.refusal({"--batch", "1"}) ==
            "error: --batch needs a whole number from 2 to 64, not '1'.\n");
    REQUIRE(count(program.refusal({"--data", "/tmp"}), "the pictures are drawn") == 1);
    // The ranks say what has failed, and compare nothing that was not computed.
    REQUIRE(has(program.refusal({"--quick", "--link", "1B/s,0s"}, 1),
                "would take longer than 10.0 s over the simulated link"));
}

}  // namespace ddp::test
