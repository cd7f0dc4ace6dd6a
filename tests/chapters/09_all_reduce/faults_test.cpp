// Jobs in which a rank fails in the middle of collectives: the job ends in time, reports in one
// line what happened to which rank, and leaves nothing behind. Within one program the next run
// works.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <iostream>
#include <regex>
#include <set>

#include "tests/chapters/support/jobs.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

constexpr const char* timeout = "2";  // seconds, for every wait
constexpr double max_seconds = 15;    // the longest time of a job, on a busy machine

// A fault and its message: a regular expression in which WHO stands for the rank at fault.
struct Expected {
    std::string what;
    std::string says;
    bool loses_rank = false;  // if so, no further run is possible
};

// Returns the call that all ranks should make, and the message if one rank does not.
std::string call(int elements, const std::string& op = "sum") {
    return "operation 2, all_reduce " + op + " of " + std::to_string(elements) +
           " float \\(\"gradients\"\\)";
}
const std::string if_slow = ": if it is only slow, or the machine is busy, give a longer --timeout";
std::string waits(int elements) {
    return "rank [0-9]: waited 2.0 s in " + call(elements) +
           "; rank WHO has ended operation 1, all_reduce average of 10 float \\(\"first\"\\)" +
           if_slow;
}
// Returns the message for two different calls. Either of two ranks may find out first.
std::string differs(const std::string& alls, const std::string& others) {
    return "(rank [0-9]: in " + alls + ", but rank WHO is in " + others + "|rank WHO: in " +
           others + ", but rank [0-9] is in " + alls +
           "): all ranks must do the same, in the same order";
}

std::vector<Expected> all_expected(int elements) {
    const std::string silent =
        "; rank WHO has said nothing for (too long|[0-9.]+ s): is it stopped\\?";
    const std::string killed = "rank WHO ended without saying why: was it killed\\?";
    const std::string awaited = " It was awaited by rank [0-9] in operation [0-9]+, all_reduce .*";
    // A rank that is ahead may wait for one that itself waits for the stopped rank.
    const std::string ahead =
        "rank [0-9]: waited 2.0 s in operation [0-9]+, all_reduce (average|sum) of [0-9]+ float "
        "\\(\"(ahead|gradients|loss)\"\\); rank [0-9] (has ended|is in) operation [0-9]+, "
        "all_reduce average of [0-9]+ float \\(\"(ahead|first)\"\\)(" +
        if_slow + ")?";
    return {
        {"throw", "rank WHO: broken on purpose"},
        {"absent", waits(elements)},
        {"late", waits(elements)},
        {"count", differs(call(elements), call(elements - 1))},
        {"operation", differs(call(elements), call(elements, "average"))},
        {"order",
         differs(call(elements), "operation 2, all_reduce sum of 10 float \\(\"loss\"\\)")},
        {"kill", killed + "(" + awaited + ")?", true},  // perhaps nobody waits for it yet
        {"kill ahead", killed + awaited, true},
        {"stop", waits(elements) + silent, true},
        {"stop ahead", ahead + silent, true},
    };
}

Launch threads(int ranks) {
    return {"threads", {FAULT_SCENARIO, "--ranks", std::to_string(ranks)}, {}};
}

std::vector<Launch> all_launches(int ranks) {
    std::vector<Launch> all = launches(FAULT_SCENARIO, ranks);
    all.insert(all.begin(), threads(ranks));
    return all;
}

// Removes the line in which our launcher reports the signal that ended a rank.
std::string without_launcher(const std::string& output) {
    return std::regex_replace(output, std::regex("launcher: [^\n]*\n"), "");
}

void require_end(const Launch& launch, const Expected& expected, int victim, int elements) {
    const TemporaryFolder folder;  // no other program uses it
    const std::string path = (folder / "").parent_path().string();
    const std::set<std::string> before = shared_memory();
    Words words{"--what",     expected.what,
                "--victim",   std::to_string(victim),
                "--elements", std::to_string(elements),
                "--timeout",  timeout};
    if (!expected.loses_rank)
        words.push_back("--catch");
    const auto begin = std::chrono::steady_clock::now();
    const ChildResult job = start(
        launch, words, 60, {"TMPDIR=" + path, "OMPI_MCA_btl_vader_backing_directory=" + path});
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    CAPTURE(launch.name, expected.what, victim, elements, job.output, elapsed.count());
    const std::string says =
        std::regex_replace(expected.says, std::regex("WHO"), std::to_string(victim));
    const std::string output = without_launcher(plain(job.output));
    const std::string whole = expected.loses_rank
                                  ? "error: " + says + "\n"
                                  : "caught: " + says + "\nbits of 3 ranks: [0-9]+\n";
    REQUIRE(std::regex_match(output, std::regex(whole)));
    REQUIRE((job.exit_code == 0) == !expected.loses_rank);
    REQUIRE(elapsed.count() < max_seconds);
    REQUIRE(nothing_is_left(FAULT_SCENARIO));
    REQUIRE(shared_memory() == before);
    REQUIRE(std::filesystem::is_empty(path));
}

void require_ends(const Launch& launch, int victim, int elements) {
    for (const Expected& expected : all_expected(elements))
        if (launch.name != "threads" || !expected.loses_rank)  // no process would be left
            require_end(launch, expected, victim, elements);
}

// Loses a rank in a short call.
void require_losses(const Launch& launch, int victim) {
    for (const Expected& expected : all_expected(100))
        if (expected.loses_rank)
            require_end(launch, expected, victim, 100);
}

}  // namespace

TEST_CASE("every fault in a long call, and lost ranks in a short one, for several ranks at fault") {
    if (!processes_can_run_kernels(3))
        return;
    require_ends(threads(3), 1, 5000);
    const Launch launcher = launches(FAULT_SCENARIO, 3).front();
    require_ends(launcher, 1, 5000);
    require_losses(launcher, 0);
}

TEST_CASE("the same faults, of a job that mpirun has started", "[.long]") {
    if (!has_mpirun() || !processes_can_run_kernels(3)) {
        std::cout << "SKIPPED: faults of jobs started by mpirun (no mpirun, or built without MPI)"
                  << std::endl;
        return;
    }
    const Launch mpirun = launches(FAULT_SCENARIO, 3).back();
    require_ends(mpirun, 1, 5000);
    require_losses(mpirun, 2);
}

TEST_CASE("a failure that is not caught ends with one line and an exit code") {
    if (!processes_can_run_kernels(3))
        return;
    for (const Launch& launch : all_launches(3)) {
        const ChildResult job = start(launch, {"--what", "count", "--timeout", timeout});
        CAPTURE(launch.name, job.output);
        REQUIRE(std::regex_match(
            without_launcher(plain(job.output)),
            std::regex("error: " +
                       std::regex_replace(differs(call(5000), call(4999)), std::regex("WHO"), "1") +
                       "\n")));
        REQUIRE(job.exit_code != 0);
    }
}

TEST_CASE("the same bits, whichever launcher has started the ranks") {
    if (!processes_can_run_kernels(3))
        return;
    for (const int ranks : {2, 3, 4}) {
        const std::string bits = start(threads(ranks), {}).output;
        CAPTURE(ranks, bits);
        REQUIRE(std::regex_match(
            bits, std::regex("bits of " + std::to_string(ranks) + " ranks: [0-9]+\n")));
        for (const Launch& launch : launches(FAULT_SCENARIO, ranks)) {
            const ChildResult job = start(launch, {});
            CAPTURE(launch.name);
            REQUIRE(job.output == bits);
            REQUIRE(job.exit_code == 0);
        }
    }
}

TEST_CASE("25 jobs at the same time do not disturb each other") {
    if (!processes_can_run_kernels(3))
        return;
    const std::string bits = start(threads(3), {}).output;
    std::vector<std::future<ChildResult>> jobs;
    for (int i = 0; i < 25; i++)
        jobs.push_back(std::async(std::launch::async,
                                  [] { return start(launches(FAULT_SCENARIO, 3)[0], {}, 100); }));
    for (auto& job : jobs) {
        const ChildResult result = job.get();
        REQUIRE(result.output == bits);
        REQUIRE(result.exit_code == 0);
    }
    REQUIRE(nothing_is_left(FAULT_SCENARIO));
}

// Run by test_all_reduce_faults '[.repeat]', with DDP_REPEAT=20 for another number. Not in the
// usual suite.
TEST_CASE("every fault a hundred times", "[.repeat]") {
    if (!processes_can_run_kernels(3))
        return;
    const char* asked = std::getenv("DDP_REPEAT");
    const int times = asked == nullptr ? 100 : std::atoi(asked);
    for (int i = 1; i <= times; i++) {
        for (const Launch& launch : all_launches(3))
            require_ends(launch, i % 3, i % 2 == 0 ? 100 : 5000);
        std::cout << i << " of " << times << " times every fault\n" << std::flush;
    }
}

}  // namespace ddp::test
