// The chapter's program: the worked example and the machine, with threads and with processes.
#include <algorithm>
#include <cmath>

#include "tests/chapters/support/jobs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

namespace ddp::test {
namespace {

const Program program(BROADCAST_PROGRAM);

struct Runs {
    ProgramRun last;
    int never_as_predicted = 0;  // rows that were off by more than 25 % in every run
};

// Runs the program until each row of `tables` has once taken as long as predicted: eight times at
// most. A machine with other work to do may be too slow for some row in any one run.
Runs run_program(const Words& words, const std::vector<std::string>& tables) {
    std::vector<bool> was_right;
    for (int tries = 1;; tries++) {
        const ProgramRun run = program.run(words);
        was_right.resize(run.csv.rows.size());
        for (std::size_t i = 0; i < run.csv.rows.size(); i++) {
            const double ratio =
                run.csv.number(i, "seconds") / run.csv.number(i, "predicted_seconds");
            if (std::abs(ratio - 1) <= 0.25 ||
                !std::ranges::count(tables, run.csv.text(i, "table")))
                was_right[i] = true;
        }
        const auto left = static_cast<int>(std::ranges::count(was_right, false));
        if (left == 0 || tries == 8)
            return {run, left};
    }
}

}  // namespace

TEST_CASE("broadcast: a file for seven readers, 35 seconds or 15") {
    const auto [run, never_as_predicted] = run_program({"--quick"}, {"worked example"});
    const std::string& output = run.output;
    const Csv& csv = run.csv;
    for (const char* part : {"5 MB for 7 readers", "by doubling", "A broadcast among 4 ranks",
                             "1 MiB", "alpha = ", "Slices of a chain of 1 MiB: 8"})
        REQUIRE(has(output, part));
    REQUIRE(csv.rows.size() == 4 + 4 * 5);
    const double predicted[] = {35, 35, 15, 5.77};
    for (std::size_t i = 0; i < 4; i++) {
        REQUIRE(csv.text(i, "table") == "worked example");
        REQUIRE(csv.number(i, "ranks") == 8);
        REQUIRE(csv.number(i, "predicted_seconds") == Approx(predicted[i]).epsilon(0.01));
    }
    REQUIRE(never_as_predicted == 0);
    // One by one: 5 seconds more for each reader. All at once: a seventh of the link for each.
    const std::string share = output.substr(output.find("it brings ") + 10);
    REQUIRE(share.find(" kB/s to each.") < 6);
    REQUIRE(std::stod(share) * 1e3 == Approx(5e6 / csv.number(1, "seconds")).epsilon(0.01));
    // A column for each reader follows that of the deviation, in percent.
    const std::string one_by_one = table_row(output, "one by one");
    const std::vector<double> sums = numbers_of(one_by_one.substr(one_by_one.find('%') + 1));
    REQUIRE(sums.size() == 7);
    // Each takes the link for 5 seconds more, and a busy machine adds to that.
    for (std::size_t reader = 0; reader < sums.size(); reader++)
        REQUIRE(sums[reader] - (reader == 0 ? 0 : sums[reader - 1]) > 4.9);
    REQUIRE(sums.back() < 38.5);
    // The picture's file: seven readers in each of four ways, none of them before the one above.
    const Csv readers = run.beside("readers");
    REQUIRE(readers.rows.size() == 4 * 7);
    for (std::size_t i = 0; i < readers.rows.size(); i++) {
        CAPTURE(i);
        REQUIRE(readers.number(i, "reader") == i % 7 + 1);
        const double begin = readers.number(i, "begin_seconds");
        const double end = readers.number(i, "end_seconds");
        REQUIRE(begin >= 0);
        REQUIRE(end >= 5);  // as long as the file takes over one link
        REQUIRE((i % 7 == 0 || end >= readers.number(i - 1, "end_seconds")));
        if (readers.text(i, "algorithm") == "all at once")
            REQUIRE(begin == 0);
        else
            REQUIRE(end - begin == Approx(5));
    }
    REQUIRE(csv.number(4, "ranks") == 4);
    REQUIRE(csv.number(23, "bytes") == 1 << 20);
}

TEST_CASE("broadcast: three processes over a simulated link") {
    if (!processes_can_run_kernels(3))
        return;
    const auto [run, never_as_predicted] =
        run_program({"--processes", "3", "--link", "10MB/s,5ms"}, {"worked example", "machine"});
    for (const char* part :
         {"5 MB for 2 readers", "A broadcast among 3 ranks", "(the link is simulated)"})
        REQUIRE(has(run.output, part));
    REQUIRE(run.csv.rows.size() == 4 + 4 * 3);  // up to 64 KiB: more would take too long
    REQUIRE(never_as_predicted == 0);
}

TEST_CASE("broadcast: one rank is refused with advice") {
    REQUIRE(program.run({"--ranks", "1"}).output ==
            "Here two or more ranks of one node are needed: try --ranks 4.\n");
    REQUIRE(has(program.refusal({"--seed", "3"}), "nothing here is random"));
}

}  // namespace ddp::test
