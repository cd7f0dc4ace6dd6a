// The chapter's program and its bench of cross-overs: what they print, and what they write to their
// CSV files.
#include <cmath>
#include <map>

#include "tests/chapters/09_all_reduce/one_shot_sizes.hpp"
#include "tests/chapters/support/jobs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

namespace ddp::test {
namespace {

const Program all_reduce(ALL_REDUCE_PROGRAM), cross_overs(BENCH_CROSS_OVERS);

// Returns how many rows each algorithm has.
std::map<std::string, int> rows_of(const Csv& file) {
    std::map<std::string, int> rows;
    for (std::size_t i = 0; i < file.rows.size(); i++)
        rows[file.text(i, "algorithm")]++;
    return rows;
}

// Checks the numbers of a file, of which no time is far below `expected` seconds.
template <class Expected>
void require_numbers(const Csv& file, int ranks, Expected expected) {
    for (std::size_t i = 0; i < file.rows.size(); i++) {
        const double bytes = file.number(i, "bytes"), seconds = file.number(i, "seconds");
        const double n = file.number(i, "ranks");
        REQUIRE(n == ranks);
        REQUIRE(seconds > 0);
        REQUIRE(file.number(i, "bus_bytes_per_second") ==
                Approx(2 * (n - 1) / n * bytes / seconds));
        REQUIRE(seconds > 0.98 * expected(i, n, bytes));
    }
}

// Checks the two predictions against alpha and beta as the table has them. How near these are to
// the link's is tested in 07, where a measurement that other work disturbs is made again.
void require_cross_overs(const std::string& output, int ranks) {
    const Words link = words_of(table_row(output, "the link "));
    REQUIRE(link.size() >= 4);
    REQUIRE(link[1] == "ms");
    REQUIRE(std::stod(link[0]) >= 1);  // nothing is faster than the simulated link
    const auto predicted = [&](const std::string& row) {
        REQUIRE(has(output, row));
        return words_of(output.substr(output.find(row) + row.size())).at(0);
    };
    // Two and three ranks have trees with as many messages as the ring has.
    REQUIRE((predicted("ring beats reduce+broadcast") == "always") == (ranks < 4));
    // Two ranks send as much in one shot. More of them do only where a byte was seen to cost
    // nothing, which other work on the machine can make of a measurement.
    if (ranks == 2)
        REQUIRE(predicted("two-shot beats one-shot") == "never");
    else if (const std::string memory = table_row(output, "memory "); has(memory, " GB/s"))
        REQUIRE(predicted("two-shot beats one-shot") != "never");
}

// The first table, for three ranks: the sum of chunk r is at rank r first, and goes round from
// there.
const char* three_ranks =
    "begin      111     111     111\n"
    "1 add      121     112     211\n"
    "2 add      321     132     213\n"
    "3 copy     323     332     233\n"
    "4 copy     333     333     333\n";

}  // namespace

constexpr std::pair<const char*, int> jobs[] = {
    {"--ranks", 2}, {"--ranks", 3}, {"--processes", 3}, {"--processes", 4}};

TEST_CASE("the program shows the ring, the link and bits, for threads and for processes") {
    for (const auto& [how, ranks] : jobs) {
        if (std::string(how) == "--processes" && !processes_can_run_kernels(ranks))
            continue;
        CAPTURE(how, ranks);
        const ProgramRun run = all_reduce.run({"--quick", how, std::to_string(ranks)});
        REQUIRE(run.count(three_ranks) == (ranks == 3 ? 1 : 0));
        REQUIRE(run.count("An all-reduce of 1 MiB on " + std::to_string(ranks) +
                          " ranks, whose ports carry 100 MB/s") == 1);
        REQUIRE(run.count("  the same") >= 6);
        // The ring's bits are those of four others, and with two ranks there is one order only.
        REQUIRE(run.count("the same       " + std::string(ranks == 2 ? "server" : "host ring")) ==
                (ranks == 2 ? 6 : 4));
        std::map<std::string, int> link{
            {"server", 1}, {"reduce+broadcast", 1}, {"host ring", 1}, {"ring", 1}, {"two-shot", 1}};
        if (sizes_of_one_shot({1 << 20}) > 0)
            link["one-shot"] = 1;
        REQUIRE(rows_of(run.csv) == link);
        // The link is as slow on every machine.
        require_numbers(run.csv, ranks, [&](std::size_t row, double, double) {
            return run.csv.number(row, "expected_seconds");
        });
    }
}

TEST_CASE("bench cross_overs: predicted and measured, for threads and for processes") {
    for (const auto& [how, ranks] : jobs) {
        if (std::string(how) == "--processes" && !processes_can_run_kernels(ranks))
            continue;
        CAPTURE(how, ranks);
        const ProgramRun run = cross_overs.run({"--quick", how, std::to_string(ranks)});
        // Six sizes around 100 MB/s * 1 ms.
        REQUIRE(rows_of(run.csv) ==
                std::map<std::string, int>{{"reduce+broadcast", 6}, {"ring", 6}});
        require_cross_overs(run.output, ranks);
        require_numbers(run.csv, ranks, [&](std::size_t row, double n, double bytes) {
            const bool is_ring = run.csv.text(row, "algorithm") == "ring";
            const double steps = is_ring ? 2 * (n - 1) : 2 * std::ceil(std::log2(n));
            return steps * (1e-3 + (is_ring ? bytes / n : bytes) / 100e6);
        });
    }
}

// The ring of three ranks: after step s, chunk c of rank r has come in if r is s ranks behind rank
// c + 1, and has the numbers of all ranks from there on.
TEST_CASE("who holds what: the steps as a file, and as pictures in the terminal") {
    const ProgramRun run = all_reduce.run({"--ranks", "3", "--show"});
    const Csv steps = run.beside("steps");
    REQUIRE(steps.rows.size() == 5 * 3 * 3);
    for (std::size_t i = 0; i < steps.rows.size(); i++) {
        const auto step = static_cast<int>(steps.number(i, "step"));
        const auto rank = static_cast<int>(steps.number(i, "rank"));
        const auto chunk = static_cast<int>(steps.number(i, "chunk"));
        const int distance = (rank - chunk - 1 + 6) % 3;  // from where the chunk's sum begins
        // The sum passes a rank at step `distance`, and once more, whole, three steps later.
        const bool is_whole = step >= 3 + distance || (distance == 2 && step >= 2);
        int expected = 1 << rank;
        for (int i_back = 1; step >= distance && i_back <= distance; i_back++)
            expected |= 1 << (rank - i_back + 3) % 3;
        CAPTURE(step, rank, chunk);
        REQUIRE(steps.number(i, "ranks") == (is_whole ? 7 : expected));
        REQUIRE(steps.number(i, "received") ==
                (step > 0 && (step == distance || step == 3 + distance)));
    }
    const Csv ports = run.beside("ports");
    REQUIRE(ports.rows.size() == 63);
    REQUIRE(ports.number(6, "ranks") == 8);
    REQUIRE(ports.number(6, "server") == 14);
    REQUIRE(ports.number(6, "reduce_broadcast") == 6);
    REQUIRE(ports.number(6, "ring") == Approx(1.75));
    // Not a terminal: no colours, and no wait for Enter.
    REQUIRE(run.count("\033") == 0);
    REQUIRE(has(run.output,
                "Step 2 of 4: every rank receives a chunk from the left, and adds its own.\n"
                "           rank 0      rank 1      rank 2\n"
                "  chunk 0  012         ·1·         ·12\n"
                "  chunk 1  0·2         012         ··2\n"
                "  chunk 2  0··         01·         012\n"
                "  came in  chunk 0     chunk 1     chunk 2\n"
                "  port     ██░░ 0.67   ██░░ 0.67   ██░░ 0.67\n"));
    REQUIRE(has(run.output, "Step 4 of 4"));
    REQUIRE(run.count("An all-reduce of") == 0);
    REQUIRE(all_reduce.refusal({"--ranks", "9", "--show"}) ==
            "error: --show draws 2 to 8 ranks of one node.\n");
}

TEST_CASE(
    "--link is the link of the run, and the only one of the bench; one rank has nothing to do") {
    const ProgramRun run = all_reduce.run({"--quick", "--ranks", "3", "--link", "200MB/s,1ms"});
    REQUIRE(run.count("on 3 ranks, whose ports carry 200 MB/s") == 1);
    const ProgramRun link = cross_overs.run({"--quick", "--ranks", "3", "--link", "200MB/s,1ms"});
    REQUIRE(link.count("ring beats reduce+broadcast") == 1);
    REQUIRE(link.count("two-shot beats one-shot") == 0);
    REQUIRE(all_reduce.run({"--ranks", "1"}).output ==
            "A sum over ranks takes two or more of them: try --ranks 4.\n");
    REQUIRE(cross_overs.refusal({"--ranks", "1"}) ==
            "error: One rank has nobody to sum with: try --ranks 4.\n");
}

}  // namespace ddp::test
