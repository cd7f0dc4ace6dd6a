// The chapter's program and its bench of cross-overs: what they print, and write to CSV files.
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "09_all_reduce/all_reduce.hpp"
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

// The first table, for three ranks: the sum of chunk r is at rank r first, and then goes round.
const char* three_ranks =
    "begin      111     111     111\n"
    "1 add      121     112     211\n"
    "2 add      321     132     213\n"
    "3 copy     323     332     233\n"
    "4 copy     333     333     333\n";

constexpr double array_bytes = 840 * 1024;  // of the recordings

// One algorithm's rows in the file of steps.
struct RecordedPorts {
    std::map<int, std::map<int, std::array<double, 2>>> busiest;  // by step and rank: in, out
    std::map<int, double> received, sent, step_us;
    std::map<std::tuple<int, int, int>, int> holdings;  // by step, rank and chunk
    std::set<std::tuple<int, int, int>> came;

    void add(const Csv& file, std::size_t i) {
        const auto number = [&](const char* column) {
            return static_cast<int>(file.number(i, column));
        };
        const int step = number("step"), rank = number("rank");
        const std::tuple place{step, rank, number("chunk")};
        holdings[place] = number("ranks");
        if (number("received") > 0)
            came.insert(place);
        busiest[step][rank][0] += number("received");
        busiest[step][rank][1] += number("sent");
        received[step] += number("received");
        sent[step] += number("sent");
        step_us[step] = number("step_us");
    }
};

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
        REQUIRE(run.count("  the same") > std::ssize(all_reduces));
        // The ring's bits are those of all that keep its order and of native, and with two ranks
        // there is one order only.
        const auto in_ring_order = std::ranges::count_if(
            all_reduces, [](const ListedAllReduce& listed) { return listed.keeps_ring_order; });
        REQUIRE(run.count("the same       " + std::string(ranks == 2 ? "server" : "host ring")) >=
                (ranks == 2 ? std::ssize(all_reduces) : in_ring_order));
        std::map<std::string, int> link;
        for (const ListedAllReduce& listed : all_reduces)
            if (listed.max_bytes >= 1 << 20)
                link[listed.name] = 1;
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
    REQUIRE(rows_of(steps) == std::map<std::string, int>{{"ring", 5 * 9},
                                                         {"server", 5 * 9},
                                                         {"reduce+broadcast", 5 * 9},
                                                         {"two-shot", 3 * 9}});
    for (std::size_t i = 0; steps.text(i, "algorithm") == "ring"; i++) {
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
        const bool came = step > 0 && (step == distance || step == 3 + distance);
        REQUIRE(steps.number(i, "received") == (came ? array_bytes / 3 : 0));
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

// All four algorithms, on numbers of ranks that are powers of two and that are not: a chunk has
// only numbers that it had or that came in, all ranks end with the whole sum, and the ports have
// carried what the formulas say, over a link on which no step is faster than its bytes.
TEST_CASE("recordings: holdings grow by what came in, to the whole sum, through the ports") {
    for (const int ranks : {2, 3, 5, 8}) {
        const Csv steps =
            all_reduce.run({"--ranks", std::to_string(ranks), "--show"}).beside("steps");
        std::map<std::string, RecordedPorts> recorded;
        for (std::size_t i = 0; i < steps.rows.size(); i++)
            recorded[steps.text(i, "algorithm")].add(steps, i);
        REQUIRE(recorded.size() == 4);
        const double n = ranks;
        const double levels = std::ceil(std::log2(n));
        const std::map<std::string, double> critical{{"ring", 2 * (n - 1) / n},
                                                     {"server", 2 * (n - 1)},
                                                     {"reduce+broadcast", 2 * levels},
                                                     {"two-shot", 2 * (n - 1) / n}};
        for (auto& [algorithm, ports] : recorded) {
            CAPTURE(ranks, algorithm);
            const int last = ports.busiest.rbegin()->first;
            double arrays = 0;
            for (const auto& [step, of_rank] : ports.busiest) {
                double most = 0;
                for (const auto& [rank, bytes] : of_rank)
                    most = std::max({most, bytes[0], bytes[1]});
                arrays += most / array_bytes;
                REQUIRE(ports.step_us[step] >= 0.98 * most / 100e6 * 1e6);
                REQUIRE(ports.received[step] == ports.sent[step]);
            }
            REQUIRE(arrays == Approx(critical.at(algorithm)));
            for (const auto& [place, set] : ports.holdings) {
                const auto& [step, rank, chunk] = place;
                CAPTURE(step, rank, chunk);
                REQUIRE((set >> rank & 1) == 1);
                if (step == 0)
                    REQUIRE(set == 1 << rank);
                else if (ports.holdings.at({step - 1, rank, chunk}) != set)
                    REQUIRE(ports.came.contains(place));
                if (step == last)
                    REQUIRE(set == (1 << ranks) - 1);
            }
        }
    }
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
