// The chapter's program: the plans that it prints and writes, and how it refuses.
#include "common/report/csv.hpp"
#include "tests/common/report/temporary_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"

namespace ddp::test {
namespace {

Csv plans(const std::vector<std::string>& options) {
    const TemporaryFolder folder;
    std::vector<std::string> command{BUCKETS_PROGRAM, "--csv", (folder / "plans.csv").string()};
    command.insert(command.end(), options.begin(), options.end());
    const ChildResult result = run_command(command);
    INFO(result.output);
    REQUIRE(result.exit_code == 0);
    REQUIRE(result.output.find("eight layers of 512") != std::string::npos);
    return read_csv(folder / "plans.csv");
}

std::vector<int> bytes_of(const Csv& csv, const std::string& network,
                          const std::string& iteration) {
    std::vector<int> bytes;
    for (std::size_t row = 0; row < csv.rows.size(); row++)
        if (csv.text(row, "network") == network && csv.text(row, "iteration") == iteration)
            bytes.push_back(static_cast<int>(csv.number(row, "bytes")));
    return bytes;
}

}  // namespace

TEST_CASE("buckets program: one bucket at first, then by the cap") {
    const Csv usual = plans({});
    REQUIRE(bytes_of(usual, "mlp", "1") == std::vector<int>{7'454'760});
    REQUIRE(bytes_of(usual, "mlp", "2").size() == 2);
    REQUIRE(bytes_of(usual, "cnn", "2") == std::vector<int>{201'512});
    REQUIRE(bytes_of(usual, "eight layers of 512", "1") == std::vector<int>{8'404'992});
    REQUIRE(bytes_of(usual, "eight layers of 512", "2").size() == 2);
    REQUIRE(bytes_of(plans({"--cap", "4"}), "mlp", "2").size() == 2);
    REQUIRE(bytes_of(plans({"--cap", "100"}), "mlp", "2").size() == 1);
}

TEST_CASE("buckets program: what makes no sense is refused in a sentence") {
    const ChildResult cap = run_command({BUCKETS_PROGRAM, "--cap", "-1"});
    REQUIRE(cap.exit_code != 0);
    REQUIRE(cap.output.find("--cap") != std::string::npos);
    const ChildResult ranks = run_command({BUCKETS_PROGRAM, "--ranks", "2"});
    REQUIRE(ranks.exit_code != 0);
    REQUIRE(ranks.output.find("nothing is sent here yet") != std::string::npos);
}

}  // namespace ddp::test
