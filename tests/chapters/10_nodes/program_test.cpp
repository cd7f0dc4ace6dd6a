// The chapter's program on one machine, which pretends nodes: bits, bytes and refusals.
#include <map>

#include "tests/chapters/support/jobs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

namespace ddp::test {
namespace {

const Program nodes(NODES_PROGRAM);

// Returns the bits by size and levels.
std::map<std::pair<std::string, std::string>, std::string> bits_of(const Csv& csv) {
    std::map<std::pair<std::string, std::string>, std::string> bits;
    for (std::size_t row = 0; row < csv.rows.size(); row++)
        bits[{csv.text(row, "bytes"), csv.text(row, "levels")}] = csv.text(row, "bits");
    return bits;
}

}  // namespace

TEST_CASE("nodes: two levels have other bits and send less, and a shape is a shape") {
    const ProgramRun run = nodes.run({"--quick", "--mebibytes", "1"});
    REQUIRE(has(run.output, "One ring against two levels, on 2 nodes of 2 ranks"));
    const auto bits = bits_of(run.csv);
    REQUIRE(bits.size() == 6);
    REQUIRE(bits.at({"1048576", "1"}) != bits.at({"1048576", "2"}));
    for (std::size_t row = 0; row < run.csv.rows.size(); row++) {
        const double k = run.csv.number(row, "bytes");
        REQUIRE(run.csv.number(row, "expected_bytes_leaving_node") ==
                (run.csv.text(row, "levels") == "1" ? 1.5 * k : k));
        REQUIRE(run.csv.text(row, "bytes_leaving_node").empty());  // nothing crosses a network
    }
    const ProgramRun processes =
        nodes.run({"--quick", "--mebibytes", "1", "--processes", "4", "--shape", "2x2"});
    REQUIRE(bits_of(processes.csv) == bits);
    const ProgramRun one_each = nodes.run({"--quick", "--mebibytes", "1", "--shape", "4x1"});
    REQUIRE(bits_of(one_each.csv).at({"1048576", "1"}) == bits.at({"1048576", "1"}));
    REQUIRE(bits_of(one_each.csv).size() == 3);  // both orders are one ring
}

TEST_CASE("nodes: what makes no sense is refused in one sentence") {
    REQUIRE(has(nodes.refusal({"--shape", "2x2", "--ranks", "3"}),
                "--shape 2x2 has 4 ranks, and there are 3: take another shape, or as many ranks."));
    REQUIRE(has(nodes.refusal({"--link", "1MB/s,1ms"}), "makes no sense here"));
}

}  // namespace ddp::test
