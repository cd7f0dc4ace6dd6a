// The simulation in the chapter's program: its tables, its files, and what it refuses.
#include <regex>

#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

namespace ddp::test {
namespace {

const Program program(CLUSTER_PROGRAM);

// Returns what the run has predicted; -1: nothing of that kind.
double predicted(const ProgramRun& run, const std::string& kind, const std::string& what) {
    const Csv file = run.beside("simulated");
    for (std::size_t row = 0; row < file.rows.size(); row++)
        if (file.text(row, "kind") == kind && file.text(row, "what") == what)
            return file.number(row, "predicted");
    return -1;
}

}  // namespace

TEST_CASE("cluster program: 4,096 ranks, and the error behind every prediction") {
    const ProgramRun run = program.run({});
    const auto predicted = [&](const std::string& kind, const std::string& what) {
        return test::predicted(run, kind, what);
    };
    // Rings die of latency, two levels a little later, the tree does not.
    const double flat = predicted("speed kept", "4096 ranks, flat ring");
    const double two = predicted("speed kept", "4096 ranks, two levels");
    const double tree = predicted("speed kept", "4096 ranks, double tree");
    REQUIRE(flat < two);
    REQUIRE(two < 0.5);
    REQUIRE(tree > 0.9);
    const double with_jitter = predicted("speed kept", "4096 ranks, the best, with jitter");
    REQUIRE(with_jitter < tree - 0.1);
    REQUIRE(predicted("speed kept", "8 ranks, the best, with jitter") > with_jitter);
    REQUIRE(predicted("failures", "4096 ranks, time that counts, simulated") ==
            Approx(predicted("failures", "4096 ranks, time that counts")).margin(0.005));
    REQUIRE(run.count(" measured): ") == 7);
    // In the row of 4,096 ranks stands how far published numbers were off.
    REQUIRE(std::regex_search(run.output, std::regex("\n +4096 .* us +39\\.4 %\n")));
    REQUIRE(std::regex_search(run.output, std::regex("\n +4096 .* 56\\.1 % of the loss\n")));
    int compared = 0;
    const Csv file = run.beside("simulated");
    for (std::size_t row = 0; row < file.rows.size(); row++)
        compared += file.text(row, "error") != "";
    REQUIRE(compared == 125);
}

TEST_CASE("cluster program: a reader's own cluster, links and step") {
    const TemporaryFolder folder;
    const std::filesystem::path links = folder / "links.csv";
    std::ofstream(links) << "link,bytes,seconds\nbetween,1000,0.001\nbetween,1000000,0.1\n";
    const std::string step = std::string(REFERENCE_FOLDER) + "/overlap_timeline.csv";
    const ProgramRun run = program.run({"--per-node", "2", "--ports", "1", "--most-ranks", "8",
                                        "--links", links.string(), "--step", step});
    REQUIRE(run.count("of 4 ranks: measured ") == 1);
    REQUIRE(predicted(run, "speed kept", "8 ranks, double tree") < 0.1);
}

TEST_CASE("cluster program: an all-reduce of one's own size, and delays that are never long") {
    const Words nodes{"--per-node", "2", "--most-ranks", "6",
                      "--ports",    "1", "--between",    "50Mbit/s,0s"};
    const std::string what = "6 ranks, flat ring";
    const ProgramRun two = program.run(nodes + Words{"--bytes", "2097152"});
    REQUIRE(two.count("An all-reduce of 2 MiB") == 1);
    // Round the ring 2 (N - 1) / N of the bytes leave each node, at 50 Mbit/s.
    REQUIRE(predicted(two, "all-reduce", what) ==
            Approx(2 * 5.0 / 6 * 2097152 / (50e6 / 8)).epsilon(0.01));
    REQUIRE(program.run(nodes).count("An all-reduce of 25") == 1);
    const ProgramRun even = program.run({"--delays", "even"});
    REQUIRE(two.count("delays are exponential") == 1);
    REQUIRE(even.count("delays are exponential") == 0);
    REQUIRE(predicted(even, "speed kept", "4096 ranks, the best, with jitter") ==
            Approx(1 / 1.06).epsilon(0.01));
    REQUIRE(
        has(program.refusal({"--delays", "normal"}), "--delays needs one of exponential, even"));
}

TEST_CASE("cluster program: refusals") {
    REQUIRE(has(program.refusal({"--between", "fast"}), "--between must be BANDWIDTH,LATENCY"));
    REQUIRE(has(program.refusal({"--per-node", "8", "--most-ranks", "4"}), "--most-ranks"));
    // The simulator comes last, but what it cannot do is said before the all-reduces begin.
    REQUIRE(program.refusal({"--ranks", "2", "--between", "fast"}).starts_with("error: --between"));
    REQUIRE(has(program.refusal({"--link", "1GB/s,1us"}), "the simulator has links of its own"));
    REQUIRE(has(program.refusal({"--links", "/nowhere"}, 1), "cannot be read"));
    REQUIRE(has(program.refusal({"--step", "/nowhere"}, 1), "cannot be read"));
}

}  // namespace ddp::test
