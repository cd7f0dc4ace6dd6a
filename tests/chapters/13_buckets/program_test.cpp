// The chapter's program: the plans that it prints, the sweep that it writes, the bits, under every
// launcher, and how it refuses.
#include <regex>
#include <set>

#include "common/report/csv.hpp"
#include "tests/chapters/support/jobs.hpp"
#include "tests/common/report/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const std::string program = BUCKETS_PROGRAM;

std::string printed(const Words& words) {
    const ChildResult result = run_command(Words{program} + words);
    INFO(result.output);
    REQUIRE(result.exit_code == 0);
    return result.output;
}

// The buckets of a network after the first iteration.
int buckets(const std::string& output, const std::string& network) {
    const std::size_t begin = output.find("\n" + network + "\n");
    const std::size_t from = begin == output.npos ? 0 : begin;
    const std::string table = output.substr(from, output.find("\n\n", from) - from);
    const std::regex row("\n +2 +[0-9]+ +[0-9]+ +linear");
    return static_cast<int>(
        std::distance(std::sregex_iterator(table.begin(), table.end(), row), {}));
}

std::vector<std::string> hashes(const std::string& output) {
    std::vector<std::string> found;
    const std::regex row("([0-9a-f]{16})  the same");
    for (std::sregex_iterator it(output.begin(), output.end(), row), end; it != end; ++it)
        found.push_back((*it)[1]);
    return found;
}

}  // namespace

TEST_CASE("buckets program: one bucket at first, then by the cap") {
    const std::string usual = printed({"--ranks", "1"});
    REQUIRE(count(usual, "To send buckets, two or more ranks") == 1);
    REQUIRE(buckets(usual, "eight layers of 512") == 2);
    REQUIRE(buckets("\n" + usual, "mlp") == 2);
    REQUIRE(buckets("\n" + printed({"--ranks", "1", "--cap", "100"}), "mlp") == 1);
    REQUIRE(buckets("\n" + printed({"--ranks", "1", "--cap", "0.001"}), "mlp") >= 3);
}

TEST_CASE("buckets program: the sweep is written, and bits differ by bucket from three ranks on") {
    const TemporaryFolder folder;
    const std::string csv = (folder / "sweep.csv").string();
    const int ranks = 3;  // of two, sweep_test says what bits they give
    const Words words{"--quick", "--link", "1GB/s,200us"};
    const std::string threads =
        printed(Words{"--ranks", std::to_string(ranks), "--csv", csv} + words);
    const std::vector<std::string> bits = hashes(threads);
    REQUIRE(bits.size() == 3);
    REQUIRE(std::set<std::string>(bits.begin(), bits.end()).size() == 3);
    const Csv sweep = read_csv(csv);
    REQUIRE(sweep.rows.size() == 2 * 3);
    REQUIRE(sweep.number(0, "buckets") == 6);
    REQUIRE(sweep.number(2, "buckets") == 1);
    REQUIRE(sweep.number(3, "buckets") == 128);
    for (std::size_t row = 0; row < sweep.rows.size(); row++) {
        REQUIRE(sweep.number(row, "ranks") == ranks);
        // Never faster than the link, whatever else the machine does.
        REQUIRE(sweep.number(row, "seconds") > 0.9 * sweep.number(row, "predicted_seconds"));
    }
    for (const Launch& launch : launches(program, ranks)) {
        const ChildResult job = start(launch, words);
        CAPTURE(launch.name, job.output);
        REQUIRE(job.exit_code == 0);
        REQUIRE(hashes(job.output) == bits);
    }
    REQUIRE(nothing_is_left(program));
}

TEST_CASE("buckets program: what makes no sense is refused in a sentence") {
    const ChildResult cap = run_command({program, "--cap", "-1"});
    REQUIRE(cap.exit_code != 0);
    REQUIRE(cap.output.find("--cap") != std::string::npos);
    const ChildResult data = run_command({program, "--data", "/tmp"});
    REQUIRE(data.exit_code != 0);
    REQUIRE(data.output.find("nothing is read") != std::string::npos);
}

}  // namespace ddp::test
