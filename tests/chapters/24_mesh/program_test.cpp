// The chapter's program: one hash with every launcher, its refusals, and how it ends when a rank of
// any axis is killed or stopped.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <regex>
#include <thread>

#include "common/report/bench.hpp"
#include "tests/chapters/support/jobs.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const std::string path = MESH_PROGRAM;
const Program program(path);

// Returns the process of rank 1 of the job that writes `csv`, once it has computed for 0.3 s: its
// start takes less than half of that. 0 if it never does.
pid_t rank_1_at_work(const std::string& csv) {
    for (const Stopwatch watch; watch.seconds() < 60;
         std::this_thread::sleep_for(std::chrono::milliseconds(20)))
        for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
            const std::string command = contents(entry.path() / "cmdline");
            if (!command.starts_with(path) || !has(command, csv) ||
                !has('\0' + contents(entry.path() / "environ"), std::string("\0RANK=1\0", 8)))
                continue;
            // The twelfth number behind the program's name, in ticks.
            const std::string stat = contents(entry.path() / "stat");
            const Words words = words_of(stat.substr(std::min(stat.rfind(')'), stat.size())));
            if (words.size() > 12 && std::stol(words[12]) > 0.3 * sysconf(_SC_CLK_TCK))
                return std::stoi(entry.path().filename());
        }
    return 0;
}

// Sends rank 1 of a mesh of two processes a signal in the middle of the training. Returns what the
// job says.
std::string said_after(int signal, const std::string& mesh) {
    const TemporaryFolder folder;
    const std::string csv = (folder / "run.csv").string();
    std::future<ChildResult> job = std::async(std::launch::async, [&] {
        return program.call({"--processes", "2", "--mesh", mesh, "--steps", "100000", "--csv", csv,
                             "--timeout", "2"});
    });
    const pid_t process = rank_1_at_work(csv);
    CAPTURE(mesh, signal);
    REQUIRE(process > 0);
    kill(process, signal);
    const ChildResult result = job.get();
    CAPTURE(result.output);
    REQUIRE(result.exit_code != 0);
    REQUIRE(count(result.output, "error:") == 1);
    REQUIRE(nothing_is_left(path));
    return plain(result.output);
}

}  // namespace

TEST_CASE("mesh program: every launcher ends in the same bits, those of one rank") {
    const Words words{"--quick", "--steps", "2"};
    const Csv threads = program.run(words + Words{"--ranks", "4"}).csv;
    REQUIRE(threads.rows.size() == 6);
    for (std::size_t row = 0; row < threads.rows.size(); row++)
        REQUIRE((threads.number(row, "dp") == 4 ||
                 threads.text(row, "hash") == threads.text(row, "hash_of_one_rank")));
    for (const Launch& launch : launches_with_kernels(path, 4)) {
        CAPTURE(launch.name);
        const TemporaryFolder folder;
        run_job(launch, words + Words{"--csv", (folder / "run.csv").string()});
        const Csv job = read_csv(folder / "run.csv");
        REQUIRE(job.rows.size() == threads.rows.size());
        for (std::size_t row = 0; row < job.rows.size(); row++)
            REQUIRE(job.text(row, "hash") == threads.text(row, "hash"));
    }
    REQUIRE(nothing_is_left(path));
}

TEST_CASE("mesh program: bad input in one sentence") {
    REQUIRE(has(program.refusal({"--mesh", "3x1x1", "--ranks", "4"}, 1),
                "A mesh of 3 x 1 x 1 needs 3 ranks, and this job has 4."));
    REQUIRE(has(program.refusal({"--mesh", "1x3x1", "--ranks", "3"}, 1),
                "4 blocks cannot be dealt out to 3 stages: choose a number that divides."));
    REQUIRE(has(program.refusal({"--mesh", "1x1x3", "--ranks", "3"}, 1),
                "cannot be dealt out to 3 parts: choose a number that divides."));
    REQUIRE(
        has(program.refusal({"--mesh", "64x1x1", "--ranks", "64"}, 1),
            "32 sentences cannot be dealt out to 64 micro-batches: choose a number that divides."));
    REQUIRE(has(program.refusal({"--mesh", "2x2", "--ranks", "4"}, 2),
                "A mesh is three numbers, replicas x stages x parts"));
}

TEST_CASE("mesh program: a rank of any axis that is killed, or stops, is named") {
    if (!processes_can_run_kernels(2))
        return;
    const std::string all_reduce = "all_reduce [a-z]+ of [0-9]+ float";
    for (const auto& [mesh, call] :
         {std::pair<std::string, std::string>{"2x1x1", all_reduce + " \\(\"dp: [^\"]+\"\\)"},
          {"1x2x1", "(send|receive) of [0-9]+ float (to|from) rank 1 \\(\"pp: [a-z]+\"\\)"},
          {"1x1x2", all_reduce + " \\(\"tp: [^\"]+\"\\)"}}) {
        const std::string in = " in operation [0-9]+, " + call;
        const std::regex awaited(
            "rank 1 ended without saying why: was it killed\\? It was awaited by rank 0" + in);
        std::string killed;  // now and then while nobody waits for it yet
        for (int tries = 0; tries < 5 && !std::regex_search(killed, awaited); tries++)
            killed = said_after(SIGKILL, mesh);
        const std::string stopped = said_after(SIGSTOP, mesh);
        CAPTURE(mesh, killed, stopped);
        REQUIRE(std::regex_search(killed, awaited));
        REQUIRE(std::regex_search(stopped,
                                  std::regex("error: rank 0: waited 2.0 s" + in + "; rank 1 ")));
    }
}

}  // namespace ddp::test
