// The chapter's program on a small data set: what it shows, the same under every launcher, and how
// it refuses what makes no sense.
#include <array>
#include <cmath>
#include <iostream>
#include <set>

#include "tests/chapters/support/jobs.hpp"
#include "tests/chapters/support/pictures.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const std::string path = DATA_PARALLEL_PROGRAM;
const Program program(path);

// Returns the hashes of one column of the table, by rank.
Words hashes(const std::string& output, int column) {
    return matches(output, " +[0-9]+ +([0-9a-f]{16}) +([0-9a-f]{16})", column);
}

}  // namespace

TEST_CASE(
    "data_parallel: replicas drift without averaging; with it they stay equal and learn as one") {
    const Pictures data(600, 20);
    const ProgramRun run =
        program.run({"--data", data.folder(), "--ranks", "3", "--steps", "12", "--batch", "16"});
    REQUIRE(run.count("The same network after 12 steps") == 1);
    for (const char* part :
         {"One step with 100 samples, by hand", "mean of means", "The loss of the last steps is ",
          "learning rate of 0.0167 where the others have 0.0500",
          "A collective inside `if (rank == 0)`", "\"validation loss\"", "it goes through",
          " after 10 steps alone, and by "})
        REQUIRE(run.count(part) == 1);
    const Words alone = hashes(run.output, 1);
    REQUIRE(std::set<std::string>(alone.begin(), alone.end()).size() == 3);
    const Words together = hashes(run.output, 2);
    REQUIRE(together == Words(3, together.at(0)));
    const Csv& losses = run.csv;
    REQUIRE(losses.rows.size() == 12);
    for (std::size_t i = 0; i < 12; i++)
        REQUIRE(losses.number(i, "averaged") == Approx(losses.number(i, "one_rank")).margin(1e-5));
    REQUIRE(losses.number(11, "averaged") < 0.8 * losses.number(0, "averaged"));
    REQUIRE(losses.number(9, "drift_alone") == 0);
    REQUIRE(losses.number(11, "drift_alone") > 1e-3);
    REQUIRE(losses.number(11, "drift_averaged") == 0);
    REQUIRE(std::abs(losses.number(11, "alone") - losses.number(11, "one_rank")) > 1e-4);
    // The paths of the three replicas, at the steps 0 and 10: first alone, then averaged.
    const Csv paths = run.beside("replicas");
    REQUIRE(paths.rows.size() == 2 * 2 * 3);
    for (const std::string bias : {"bias_0", "bias_1"}) {
        const auto replicas = [&](std::size_t first) {
            std::set<double> different;
            for (std::size_t row = first; row < first + 3; row++)
                different.insert(paths.number(row, bias));
            return different.size();
        };
        REQUIRE(std::array{replicas(0), replicas(3), replicas(6), replicas(9)} ==
                std::array<std::size_t, 4>{1, 3, 1, 1});
        REQUIRE(paths.number(6, bias) != paths.number(9, bias));  // they have moved
    }
}

TEST_CASE("data_parallel: one rank, and every launcher, give the same bits") {
    const Pictures data(200, 20);
    const Words words{"--data", data.folder(), "--steps", "3", "--batch", "8", "--seed", "9"};
    for (const int ranks : {1, 2, 4}) {
        CAPTURE(ranks);
        const ProgramRun threads = program.run(Words{"--ranks", std::to_string(ranks)} + words);
        REQUIRE(threads.count("parameters differed by") == 0);  // too few steps to measure it
        const Words expected = hashes(threads.output, 2);
        REQUIRE(expected.size() == static_cast<std::size_t>(ranks));
        for (const Launch& launch : launches_with_kernels(path, ranks)) {
            CAPTURE(launch.name);
            const ProgramRun job = run_job(launch, words);
            REQUIRE(hashes(job.output, 2) == expected);
        }
    }
    REQUIRE(nothing_is_left(path));
}

TEST_CASE("data_parallel: gradients are averaged by MPI where it is installed") {
    if (!processes_can_run_kernels(3))
        return;
    if (!has_mpirun()) {
        std::cout << "SKIPPED: gradients carried by MPI (no mpirun, or built without MPI)\n";
        return;
    }
    const Pictures data(200, 20);
    const ProgramRun job = run_job(launches(path, 3)[1], {"--data", data.folder(), "--steps", "3",
                                                          "--batch", "8", "--communicator", "mpi"});
    const Words together = hashes(job.output, 2);
    REQUIRE(together == Words(3, together.at(0)));
}

TEST_CASE("data_parallel: what makes no sense is refused in one sentence") {
    const Pictures data(100, 20);
    REQUIRE(program.refusal(
                {"--data", data.folder(), "--ranks", "4", "--steps", "4", "--batch", "7"}) ==
            "error: 4 steps of 7 samples on 4 ranks need more than the 100 there are: use fewer "
            "--steps.\n");
    REQUIRE(
        count(program.refusal({"--data", data.folder(), "--steps", "60000", "--batch", "60000"}),
              "more than the 100 there are") == 1);
    REQUIRE(program.refusal({"--steps", "0"}) ==
            "error: --steps needs a whole number from 1 to 60000, not '0'.\n");
    REQUIRE(count(program.refusal({"--trace", "t.json"}),
                  "the timeline of a step comes in 15_overlap") == 1);
    REQUIRE(count(program.refusal({"--data", data.folder(), "--ranks", "2", "--communicator",
                                   "nccl", "--steps", "1", "--batch", "1"},
                                  1),
                  "ommunicator nccl") == 1);
}

}  // namespace ddp::test
