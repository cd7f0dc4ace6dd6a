// The chapter's program: the worked example and the machine, with threads and with processes.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "common/report/csv.hpp"
#include "tests/common/report/temporary_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"

namespace ddp::test {
namespace {

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// Returns how many rows of `part` have a prediction that is off by more than 25 %.
int far_off(const Csv& csv, const std::string& part) {
    int far = 0;
    for (std::size_t i = 0; i < csv.rows.size(); i++)
        far += csv.text(i, "part") == part &&
               std::abs(csv.number(i, "seconds") / csv.number(i, "predicted_seconds") - 1) > 0.25;
    return far;
}

// Returns when each friend had the file, from the algorithm's row in the worked example.
std::vector<double> arrivals(const std::string& output, const std::string& algorithm) {
    const std::size_t begin = output.find("\n" + algorithm);
    std::istringstream row(output.substr(begin, output.find('\n', begin + 1) - begin));
    std::string word;
    while (word != "%")
        row >> word;
    std::vector<double> seconds;
    for (double each; row >> each;)
        seconds.push_back(each);
    return seconds;
}

struct Run {
    std::string output;
    Csv csv;
};

// Runs the program, and returns its output and its measurements. A machine with other work to do
// may be too slow for a link at times: if `parts` are far off, the run is repeated.
Run run_program(std::vector<std::string> arguments, const std::vector<std::string>& parts) {
    const TemporaryFolder folder;
    const std::string file = (folder / "broadcast.csv").string();
    arguments.insert(arguments.begin(), {BROADCAST_PROGRAM, "--csv", file});
    Run run;
    for (int tries = 0; tries < 8; tries++) {
        const ChildResult result = run_command(arguments);
        INFO(result.output);
        REQUIRE(result.exit_code == 0);
        run = {result.output, read_csv(file)};
        if (std::ranges::all_of(parts, [&](auto& part) { return far_off(run.csv, part) == 0; }))
            break;
    }
    return run;
}

}  // namespace

TEST_CASE("broadcast: a file for seven friends, 35 seconds or 15") {
    const auto [output, csv] = run_program({"--quick"}, {"story"});
    for (const char* part : {"5 MB for 7 friends", "by doubling", "A broadcast among 4 ranks",
                             "1 MiB", "alpha = ", "Slices of a chain of 1 MiB: 8"})
        REQUIRE(contains(output, part));
    REQUIRE(csv.rows.size() == 4 + 4 * 5);
    const double predicted[] = {35, 35, 15, 5.77};
    for (std::size_t i = 0; i < 4; i++) {
        REQUIRE(csv.text(i, "part") == "story");
        REQUIRE(csv.number(i, "ranks") == 8);
        REQUIRE(csv.number(i, "predicted_seconds") == Approx(predicted[i]).epsilon(0.01));
    }
    REQUIRE(far_off(csv, "story") == 0);
    // One by one: 5 seconds more for each friend. All at once: a seventh of the link for each.
    const std::string share = output.substr(output.find("it brings ") + 10);
    REQUIRE(share.find(" kB/s to each.") < 6);
    REQUIRE(std::stod(share) * 1e3 == Approx(5e6 / csv.number(1, "seconds")).epsilon(0.01));
    const std::vector<double> sums = arrivals(output, "one by one");
    REQUIRE(sums.size() == 7);
    for (std::size_t friends = 1; friends <= sums.size(); friends++)
        REQUIRE(sums[friends - 1] == Approx(5.0 * static_cast<double>(friends)).epsilon(0.1));
    REQUIRE(csv.number(4, "ranks") == 4);
    REQUIRE(csv.number(23, "bytes") == 1 << 20);
}

TEST_CASE("broadcast: three processes over a simulated link") {
    const auto [output, csv] =
        run_program({"--processes", "3", "--link", "10MB/s,5ms"}, {"story", "machine"});
    for (const char* part :
         {"5 MB for 2 friends", "A broadcast among 3 ranks", "(the link is simulated)"})
        REQUIRE(contains(output, part));
    REQUIRE(csv.rows.size() == 4 + 4 * 3);  // up to 64 KiB: more would take too long
    REQUIRE(far_off(csv, "story") == 0);
    REQUIRE(far_off(csv, "machine") == 0);
}

TEST_CASE("broadcast: one rank is refused with advice") {
    const ChildResult result = run_command({BROADCAST_PROGRAM, "--ranks", "1"});
    REQUIRE(result.exit_code == 0);
    REQUIRE(result.output == "Here two or more ranks of one host are needed: try --ranks 4.\n");
    const ChildResult refused = run_command({BROADCAST_PROGRAM, "--seed", "3"});
    REQUIRE(refused.exit_code == 2);
    REQUIRE(contains(refused.output, "nothing here is random"));
}

}  // namespace ddp::test
