// The chapter's program: every failure case is diagnosed in time and cured in the same run, under
// every launcher, and the step that hangs is written to a file.
#include <iostream>
#include <map>
#include <regex>

#include "common/report/bench.hpp"
#include "tests/chapters/support/jobs.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const std::string path = UNUSED_PARAMETERS_PROGRAM;
const Program program(path);

// Returns the expression for a difference between two ranks. One of them is the last rank; either
// may notice it first.
std::string differs(const std::string& alls, const std::string& others, const std::string& last) {
    const std::string one = "rank [0-9]: in operation [0-9]+, all_reduce average of ";
    const std::string but = ", but rank [0-9] is in operation [0-9]+, all_reduce average of ";
    return "(" + one + alls + ", but rank " + last +
           " is in operation [0-9]+, all_reduce average of " + others + "|rank " + last +
           ": in operation [0-9]+, all_reduce average of " + others + but + alls +
           "): all ranks must do the same, in the same order";
}

// Returns a regular expression for every line about the six failures with `ranks` ranks.
std::string expected_of(int ranks) {
    const std::string last = std::to_string(ranks - 1);
    const std::string cured =
        ": parameters within 0\\.[0-9]{2} millionths of those that one rank learns from all "
        "batches\n";
    std::string waits, uneven;
    for (int rank = 0; rank + 1 < ranks; rank++)
        waits += "      rank " + std::to_string(rank) + " waits in bucket 1 of step 3 for rank " +
                 last + "\n";
    const std::string out = "; it has no batch left and waits at the barrier after the steps\n";
    for (int rank = 0; rank < ranks; rank++)
        uneven +=
            "      rank " + std::to_string(rank) +
            (rank < std::min(ranks - 1, 2) ? " waits in bucket 0 of step [45] for ranks? [0-9, ]+\n"
                                           : " has not reached bucket 0 of step [45]" + out);
    const std::string waited =
        "    rank [0-9]: waited 1.0 s in operation [0-9]+, all_reduce average of [0-9]+ float "
        "\\(\"bucket [0-9]\"\\); rank [0-9] has ended operation [0-9]+, all_reduce average of "
        "[0-9]+ float \\(\"bucket [0-9]\"\\)\n";
    std::string others = "1";
    for (int rank = 2; rank < ranks; rank++)
        others += ", " + std::to_string(rank);
    const std::string drifted =
        "rank [0-9]: the replicas have drifted apart: the parameters of rank " + others +
        " are not those of rank 0";
    return "\nA branch that one rank does not take\n" + waited + waits + "      rank " + last +
           " never sent bucket 1 of step 3: no gradient for expert0.weight, expert0.bias; it went "
           "on to the barrier after the steps as if nothing were missing\n"
           "  Cured by find_unused_parameters" +
           cured + "\nRanks with different numbers of batches\n" + waited + uneven +
           "  Cured by join" + cured + "\nGradients that are sent as soon as they are ready\n    " +
           differs("256 float \\(\"expert1.bias\"\\)", "256 float \\(\"expert0.bias\"\\)", last) +
           "\n  Cured by buckets, strictly in order" + cured +
           "\nA layer of another size on one rank\n    rank " + last +
           ": this rank's model has trunk.weight \\[255, 196\\] where rank 0's has trunk.weight "
           "\\[256, 196\\]: all ranks must build the same model\n"
           "  Cured by the same network on all ranks" +
           cured + "\nAnother bucket cap on one rank\n    " +
           differs("2832 float \\(\"bucket 0\"\\)", "184592 float \\(\"bucket 0\"\\)", last) +
           "\n  Cured by the same cap on all ranks" + cured +
           "\nA forward that goes past DDP\n    " + drifted +
           "\n  Cured by the forward of DistributedDataParallel" + cured;
}

void require_all_said(const ProgramRun& run, int ranks) {
    REQUIRE(std::regex_match(plain(run.output), std::regex(expected_of(ranks))));
}

}  // namespace

TEST_CASE(
    "unused_parameters: each failure case is reported and cured, by threads and by processes") {
    if (!has_mpirun())
        std::cout
            << "SKIPPED: failure cases of ranks started by mpirun (no mpirun, or built without MPI)"
            << std::endl;
    const auto require_run = [](int ranks, const Launch& launch) {
        CAPTURE(launch.name, ranks);
        const Stopwatch watch;
        require_all_said(run_job(launch, {"--quick"}), ranks);
        REQUIRE(watch.seconds() < 30);
    };
    require_run(4, {"threads", {path, "--ranks", "4"}, {}});
    if (processes_can_run_kernels(2))
        require_run(2, launches(path, 2)[0]);
    if (has_mpirun() && processes_can_run_kernels(3))
        require_run(3, launches(path, 3)[1]);
    REQUIRE(nothing_is_left(path));
}

TEST_CASE("unused_parameters: the step that hangs and the cured one are written to a file") {
    const ProgramRun run = program.run({"--quick", "--ranks", "3"});
    const Csv timeline = run.beside("timeline");
    std::map<std::string, double> longest;  // by part, rank and what begins so
    for (std::size_t i = 0; i < timeline.rows.size(); i++) {
        const std::string name = timeline.text(i, "name");
        double& length =
            longest[timeline.text(i, "part") + timeline.text(i, "rank") + name.substr(0, 8)];
        length = std::max(length, timeline.number(i, "end_ms") - timeline.number(i, "begin_ms"));
    }
    for (const std::string rank : {"0", "1"}) {
        REQUIRE(longest["hangs" + rank + "bucket 1"] > 900);
        REQUIRE(longest.contains("cured" + rank + "bucket 2"));
        REQUIRE(longest["cured" + rank + "bucket 1"] < 500);
    }
    REQUIRE(longest["hangs2elsewher"] > 900);
    REQUIRE(longest.contains("hangs2bucket 0"));
    REQUIRE(!longest.contains("hangs2bucket 1"));
    REQUIRE(longest.contains("cured2bucket 1"));
    // The cured step sends its map, behind the last bucket, on every rank.
    for (const std::string rank : {"0", "1", "2"}) {
        REQUIRE(longest.contains("cured" + rank + "used map"));
        REQUIRE(!longest.contains("hangs" + rank + "used map"));
    }
}

TEST_CASE("unused_parameters: the bench measures every cure, and draws nothing of a short run") {
    const Program bench(CURES_BENCH);
    const ProgramRun full = bench.run({"--ranks", "2"});
    REQUIRE(full.csv.rows.size() == 5);
    REQUIRE(full.csv.number(0, "ratio") == 1);
    REQUIRE(full.count("So few steps") == 0);
    for (const char* cure :
         {"\nplain DDP ", "\nfind_unused_parameters ", "\nstatic_graph ", "\njoin "})
        REQUIRE(full.count(cure) == 1);
    const ProgramRun quick = bench.run({"--quick", "--ranks", "2"});
    REQUIRE(quick.count("So few steps show nothing about the costs") == 1);
    REQUIRE(quick.count("relative to plain DDP: the median") == 0);
    REQUIRE(quick.csv.rows.empty());
}

TEST_CASE(
    "unused_parameters: one rank shows only the cures; bad input is refused in one sentence") {
    const ProgramRun run = program.run({"--quick", "--ranks", "1"});
    REQUIRE(run.count("A single rank waits for no other") == 1);
    REQUIRE(run.count("  Cured by ") == 6);
    REQUIRE(run.count("0.00 millionths") == 6);
    REQUIRE(count(program.refusal({"--data", "x"}), "the pictures are drawn") == 1);
    // Where nothing is to fail, a wait takes as long as the options say: 10 s with --quick.
    REQUIRE(has(program.call({"--quick", "--link", "1B/s,0s"}).output,
                " would take longer than 10.0 s over the simulated link: give a faster --link or a "
                "longer --timeout\n"));
}

}  // namespace ddp::test
