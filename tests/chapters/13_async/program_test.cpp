// The chapter's program: what it prints and writes, for threads and for processes, and jobs that
// lose a worker.
#include <regex>

#include "tests/chapters/support/jobs.hpp"
#include "tests/chapters/support/pictures.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const Program async(ASYNC_PROGRAM);

}  // namespace

TEST_CASE("async: four algorithms with and without a slow worker") {
    const Pictures data(96, 40);
    const std::pair<const char*, int> starts[] = {
        {"--ranks", 2}, {"--ranks", 3}, {"--ranks", 8}, {"--processes", 4}};
    for (const auto& [how, ranks] : starts) {
        if (std::string(how) == "--processes" && !processes_can_run_kernels(ranks))
            continue;
        CAPTURE(how, ranks);
        const ProgramRun run = async.run({"--quick", how, std::to_string(ranks), "--data",
                                          data.folder(), "--batch", "4", "--compute", "0.2",
                                          "--gradients", "50", "--bound", "1", "--timeout", "30"});
        const int workers = ranks - 1, steps = 50 / workers, gradients = steps * workers;
        const std::string number = " +([0-9.]+)", time = " +[0-9.]+ [mu]?s";
        const auto row = [&](const std::string& start, const std::string& rest) {
            return std::regex_search(run.output, std::regex("\n" + start + rest));
        };
        for (const std::string slow : {"no", "yes"}) {
            CAPTURE(slow);
            const auto counts = [&](int updates) {
                return " +" + slow + " +" + std::to_string(gradients) + " +" +
                       std::to_string(updates) + time;
            };
            REQUIRE(row("synchronous", counts(steps) + " +0\\.00 +0 +0 "));
            REQUIRE(row("asynchronous", counts(gradients) + number + number));
            REQUIRE(row("bounded staleness", counts(gradients) + number + " +[0-9]+ +[01] "));
            REQUIRE(row("local SGD", " +" + slow + " +" + std::to_string(50 / ranks * ranks)));
        }
        const Csv& file = run.csv;
        REQUIRE(file.rows.size() > 100);
        REQUIRE(file.text(0, "way") == "synchronous");
        REQUIRE(file.number(0, "gradients") >= 1);
    }
}

TEST_CASE("async: with one rank the program asks for another") {
    const ProgramRun run = async.run({"--quick", "--ranks", "1"});
    REQUIRE(run.count("One rank has no other rank to wait for: try --ranks 2") == 1);
    // The worked example's numbers.
    REQUIRE(std::regex_search(
        run.output, std::regex("5 +2 +\\(1 1 0\\) +4\\.000 +-4\\.000 +7\\.500 +2 +8\\.500")));
}

TEST_CASE("async: bad input in one sentence") {
    REQUIRE(async.refusal({"--bound", "-1"}) ==
            "error: --bound needs a whole number from 0 to 1000, not '-1'.\n");
    REQUIRE(async.refusal({"--every", "0"}) ==
            "error: --every needs a whole number from 1 to 1000000, not '0'.\n");
    REQUIRE(async.refusal({"--gradients", "3", "--ranks", "4"}) ==
            "error: --gradients 3 is less than one for each of 4 ranks: use more.\n");
    // Of 10 steps all losses may still be numbers, while the parameters are not.
    const ChildResult far = async.call({"--quick", "--learning-rate", "10"});
    REQUIRE(far.exit_code == 1);
    REQUIRE(far.output.ends_with(
        ": the parameters are no longer numbers: the steps are too long; try a smaller "
        "--learning-rate\n"));
    REQUIRE(count(async.refusal({"--link", "1MB/s,1ms"}),
                  "neither simulates a link nor draws a timeline") == 1);
}

TEST_CASE("async: a worker that is lost ends the job and is named") {
    const auto job = [](const std::string& how, const Words& words) {
        return run_command(Words{ASYNC_SCENARIO, how, "4", "--timeout", "2"} + words, {}, 20);
    };
    for (const std::string how : {"--ranks", "--processes"}) {
        if (std::string(how) == "--processes" && !processes_can_run_kernels(4))
            continue;
        const ChildResult well = job(how, {});
        CAPTURE(how, well.output);
        REQUIRE(well.exit_code == 0);
        REQUIRE(well.output == "w = -29\n");  // 60 gradients of one half, each applied once
        for (const Words& bound : {Words{}, Words{"--bound", "0"}}) {
            const ChildResult broken = job(how, Words{"--what", "throw", "--victim", "2"} + bound);
            REQUIRE(plain(broken.output) == "error: rank 2: broken on purpose\n");
            REQUIRE(broken.exit_code == 1);
        }
    }
    if (!processes_can_run_kernels(4))
        return;
    const ChildResult killed = job("--processes", {"--what", "kill", "--victim", "3"});
    CAPTURE(killed.output);
    REQUIRE(killed.exit_code != 0);
    REQUIRE(count(plain(killed.output), "rank 3") >= 1);
    REQUIRE(nothing_is_left(ASYNC_SCENARIO));
}

}  // namespace ddp::test
