// The chapter's program on a small data set: what it shows, the same under every launcher, and how
// it refuses what makes no sense.
#include <cmath>
#include <iostream>
#include <regex>
#include <set>

#include "common/report/csv.hpp"
#include "tests/chapters/support/jobs.hpp"
#include "tests/chapters/support/pictures.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const std::string program = DATA_PARALLEL_PROGRAM;

// The hashes of one column of the table, by rank.
std::vector<std::string> hashes(const std::string& output, int column) {
    std::vector<std::string> found;
    const std::regex row(" +[0-9]+ +([0-9a-f]{16}) +([0-9a-f]{16})");
    for (std::sregex_iterator it(output.begin(), output.end(), row), end; it != end; ++it)
        found.push_back((*it)[static_cast<std::size_t>(column)]);
    return found;
}

std::string refusal(const Words& words) {
    const ChildResult result = run_command(Words{program} + words);
    const bool is_one_line = result.output.find('\n') == result.output.size() - 1;
    return is_one_line && result.exit_code == 2 ? result.output : "(" + result.output + ")";
}

}  // namespace

TEST_CASE(
    "data_parallel: alone replicas drift, together they stay the same and learn as one rank") {
    const Pictures data(600, 20);
    const TemporaryFolder folder;
    const std::string csv = (folder / "course.csv").string();
    const ChildResult result = run_command({program, "--data", data.folder(), "--ranks", "3",
                                            "--steps", "12", "--batch", "16", "--csv", csv});
    CAPTURE(result.output);
    REQUIRE(result.exit_code == 0);
    REQUIRE(count(result.output, "The same network after 12 steps") == 1);
    for (const char* part :
         {"One step with 100 samples, by hand", "mean of means", "one process for all",
          "A collective inside `if (rank == 0)`", "\"validation loss\"", "it goes through"})
        REQUIRE(count(result.output, part) == 1);
    const std::vector<std::string> alone = hashes(result.output, 1);
    REQUIRE(std::set<std::string>(alone.begin(), alone.end()).size() == 3);
    const std::vector<std::string> together = hashes(result.output, 2);
    REQUIRE(together == std::vector<std::string>(3, together.at(0)));
    const Csv courses = read_csv(csv);
    REQUIRE(courses.rows.size() == 12);
    for (std::size_t i = 0; i < 12; i++)
        REQUIRE(courses.number(i, "averaged") ==
                Approx(courses.number(i, "one_rank")).margin(1e-5));
    REQUIRE(courses.number(11, "averaged") < 0.8 * courses.number(0, "averaged"));
    REQUIRE(courses.number(9, "drift_alone") == 0);
    REQUIRE(courses.number(11, "drift_alone") > 1e-3);
    REQUIRE(courses.number(11, "drift_averaged") == 0);
    REQUIRE(std::abs(courses.number(11, "alone") - courses.number(11, "one_rank")) > 1e-4);
}

TEST_CASE("data_parallel: one rank, and every launcher, give the same bits") {
    const Pictures data(200, 20);
    const Words words{"--data", data.folder(), "--steps", "3", "--batch", "8", "--seed", "9"};
    for (const int ranks : {1, 2, 4}) {
        const ChildResult threads =
            run_command(Words{program, "--ranks", std::to_string(ranks)} + words);
        CAPTURE(ranks, threads.output);
        REQUIRE(threads.exit_code == 0);
        const std::vector<std::string> expected = hashes(threads.output, 2);
        REQUIRE(expected.size() == static_cast<std::size_t>(ranks));
        for (const Launch& launch : launches(program, ranks)) {
            const ChildResult job = start(launch, words);
            CAPTURE(launch.name, job.output);
            REQUIRE(job.exit_code == 0);
            REQUIRE(hashes(job.output, 2) == expected);
        }
    }
    REQUIRE(nothing_is_left(program));
}

TEST_CASE("data_parallel: MPI carries the gradients where there is one") {
    if (!has_mpirun()) {
        std::cout << "SKIPPED: gradients carried by MPI (no mpirun, or built without MPI)\n";
        return;
    }
    const Pictures data(200, 20);
    const ChildResult job =
        start(launches(program, 3)[1],
              {"--data", data.folder(), "--steps", "3", "--batch", "8", "--communicator", "mpi"});
    CAPTURE(job.output);
    REQUIRE(job.exit_code == 0);
    const std::vector<std::string> together = hashes(job.output, 2);
    REQUIRE(together == std::vector<std::string>(3, together.at(0)));
}

TEST_CASE("data_parallel: what makes no sense is refused in one sentence") {
    const Pictures data(100, 20);
    REQUIRE(refusal({"--data", data.folder(), "--ranks", "4", "--steps", "4", "--batch", "7"}) ==
            "error: 4 steps of 7 samples on 4 ranks need more than the 100 pictures: use fewer "
            "--steps.\n");
    REQUIRE(count(refusal({"--data", data.folder(), "--steps", "60000", "--batch", "60000"}),
                  "more than the 100 pictures") == 1);
    REQUIRE(refusal({"--steps", "0"}) ==
            "error: --steps needs a whole number from 1 to 60000, not '0'.\n");
    REQUIRE(count(refusal({"--trace", "t.json"}), "the timeline of a step comes in chapter 14") ==
            1);
    REQUIRE(count(refusal({"--data", data.folder(), "--ranks", "2", "--communicator", "nccl",
                           "--steps", "1", "--batch", "1"}),
                  "ommunicator nccl") == 1);
}

}  // namespace ddp::test
