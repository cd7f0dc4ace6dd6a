// Links that were measured: the table, the file for the simulator, and the use that all-reduces
// make of a link.
#include "21_cluster/measured/own_files.hpp"
#include "common/gpu/launch.hpp"
#include "tests/chapters/support/jobs.hpp"
#include "tests/common/report/temporary_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tools/cluster/link_report.hpp"

namespace ddp::test {
namespace {

const TemporaryFolder folder;
const Program cluster_info(CLUSTER_INFO_PROGRAM, {"--show", "links", "--quick", "--timeout", "30"});

// A link that takes a millisecond, and one for each 1,000 bytes.
LinkTimes straight(const std::vector<std::size_t>& sizes, double alpha_s) {
    LinkTimes link{{}, 0, 1};
    for (const std::size_t bytes : sizes)
        link.messages.push_back({bytes, alpha_s + 1e-6 * static_cast<double>(bytes)});
    return link;
}

}  // namespace

TEST_CASE("links: the simulator reads what was measured") {
    const std::vector<std::size_t> sizes = message_sizes(1 << 20);
    ClusterLinks links;
    links.inside = straight(sizes, 0.001);
    links.between = straight(sizes, 0.25);
    {
        CsvWriter file(folder / "links.csv", link_columns());
        report_links(links, file);
    }
    const MeasuredLinks read = read_links(folder / "links.csv");
    REQUIRE(read.inside.latency_s == Approx(0.001));
    REQUIRE(read.between.latency_s == Approx(0.25));
    REQUIRE(read.between.busy_s(5e6) == Approx(5));
}

TEST_CASE("links: a link whose short messages were disturbed still has a bandwidth") {
    LinkTimes link{{}, 0, 1};
    for (const std::size_t bytes : message_sizes(1 << 12))
        link.messages.push_back({bytes, 1});
    link.messages.back().seconds = 0.5;
    REQUIRE(link.cost().alpha_s == 1);
    REQUIRE(link.cost().beta_s_per_byte == Approx(0.5 / 4096));
}

TEST_CASE("links: the share of the link is that of the bytes which leave a node") {
    OrderMeasurement all_reduce;
    all_reduce.bytes = 1'000'000;
    all_reduce.expected_bytes = 1'500'000;
    all_reduce.seconds = 3;
    REQUIRE(share_of_link(all_reduce, {0.1, 1e-6}) == Approx(0.5));
}

TEST_CASE("links: one node has only the link inside") {
    if (!processes_can_run_kernels(2))
        return;
    const ProgramRun run = cluster_info.run({"--processes", "2"});
    REQUIRE(run.csv.rows.size() == 8);
    for (std::size_t row = 0; row < 8; row++) {
        REQUIRE(run.csv.text(row, "link") == "inside");
        REQUIRE(run.csv.number(row, "bytes") == 64 << 2 * row);
        REQUIRE(run.csv.number(row, "seconds") > 0);
    }
    REQUIRE(has(run.output, "within a node (ranks 0 and 1): alpha "));
    REQUIRE(!has(run.output, "between nodes"));
    REQUIRE(has(run.output, "./book run 21 --links "));
}

TEST_CASE("links: one rank has none") {
    REQUIRE(has(cluster_info.refusal({"--processes", "1"}, 2),
                "A link is between two ranks, and there is one"));
    REQUIRE(has(cluster_info.refusal({"--ranks", "2"}),
                "--ranks, --weak, --strong and --compute are for scaling"));
}

}  // namespace ddp::test
