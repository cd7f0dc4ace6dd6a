// Jobs of processes, by our launcher, by variables and by mpirun: what they print, how they end,
// and that they leave nothing behind.
#include <chrono>
#include <filesystem>
#include <future>
#include <iostream>
#include <regex>

#include "05_ranks/rendezvous.hpp"
#include "05_ranks/support/mpi_start.hpp"
#include "tests/chapters/support/jobs.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

std::vector<Launch> launches(int ranks) {
    return test::launches(DDP_SCENARIO, ranks);
}

bool nothing_is_left() {
    return test::nothing_is_left(DDP_SCENARIO);
}

TEST_CASE("mpirun is there, or it is said that it is not") {
    if (!has_mpirun())
        std::cout << "SKIPPED: jobs started by mpirun (no mpirun, or built without MPI)"
                  << std::endl;
}

TEST_CASE("jobs of 1 to 5 processes") {
    for (int ranks : {1, 2, 3, 5})
        for (const Launch& launch : launches(ranks)) {
            CAPTURE(launch.name, ranks);
            const ChildResult job = start(launch, {});
            std::string expected = "world size " + std::to_string(ranks) + ", local";
            for (int r = 0; r < ranks; r++)
                expected += " " + std::to_string(r) + "/" + std::to_string(ranks);
            REQUIRE(job.output == expected + "\n");
            REQUIRE(job.exit_code == 0);
        }
}

TEST_CASE("threads and processes say the same") {
    const Words words{"--what", "throw", "--victim", "1", "--catch", "--repeat", "2"};
    const ChildResult threads = run_command(Words{DDP_SCENARIO, "--ranks", "3"} + words);
    REQUIRE(threads.output ==
            "caught: rank 1: broken on purpose\n"
            "caught: rank 1: broken on purpose\n"
            "world size 3, local 0/3 1/3 2/3\n");
    REQUIRE(threads.exit_code == 0);
    for (const Launch& launch : launches(3)) {
        CAPTURE(launch.name);
        const ChildResult job = start(launch, words);
        REQUIRE(plain(job.output) == threads.output);
        REQUIRE(job.exit_code == 0);
    }
}

TEST_CASE("a process takes few of the queues that NVIDIA's MPS has for all") {
    const Words words{"--what", "queues"};
    REQUIRE(has(run_command(Words{DDP_SCENARIO, "--ranks", "2"} + words).output, "queues: 32 32"));
    for (const Launch& launch : launches(2)) {
        CAPTURE(launch.name);
        REQUIRE(has(start(launch, words).output, "queues: 8 8"));
    }
}

TEST_CASE("processes send to each other's devices") {
    if (!processes_can_run_kernels(4))
        return;
    for (int ranks : {2, 3})
        for (const Launch& launch : launches(ranks)) {
            CAPTURE(launch.name, ranks);
            const ChildResult job = start(launch, {"--what", "neighbours", "--repeat", "2"});
            CAPTURE(job.output);
            std::string zeros;
            for (int r = 0; r < ranks; r++)
                zeros += " 0";
            REQUIRE(count(job.output, "wrong:" + zeros + "\n") == 2);
            REQUIRE(job.exit_code == 0);
        }
}

TEST_CASE("ranks in containers of their own: they cannot share memory, and are told what to do") {
    if (!processes_can_run_kernels(2) || !has_mpirun())
        return;
    const Words container{"unshare", "--user", "--map-root-user"};
    if (run_command(container + Words{"true"}).exit_code != 0) {
        std::cout << "SKIPPED: ranks in user namespaces of their own (none can be made here)"
                  << std::endl;
        return;
    }
    const Words mpirun{"mpirun", "--oversubscribe", "-n", "2"};
    const Launch launch{"mpirun", mpirun + container + Words{DDP_SCENARIO}, {}};
    const ChildResult job = start(launch, {"--what", "neighbours"});
    CAPTURE(job.output);
    REQUIRE(job.exit_code == 1);
    REQUIRE(count(job.output, "error: ") == 1);
    REQUIRE(std::regex_search(
        job.output,
        std::regex("error: rank [01] \\(process [0-9]+ on [^ ]+\\): the memory of rank [01] "
                   "\\(process [0-9]+ on [^ ]+\\) must not be opened: it runs as another user, or "
                   "in a container of its own\\. Start all ranks of a node in one container")));
}

TEST_CASE("two sends against each other, in processes") {
    if (!processes_can_run_kernels(3))
        return;
    for (const Launch& launch : launches(3)) {
        CAPTURE(launch.name);
        const ChildResult job = start(launch, {"--what", "sends", "--catch", "--timeout", "4"});
        CAPTURE(job.output);
        REQUIRE(count(job.output, "both send, and neither receives") == 1);
        REQUIRE(count(job.output, "world size 3") == 1);
        REQUIRE(job.exit_code == 0);
    }
}

TEST_CASE("a rank that throws: one report, from any rank") {
    for (const char* victim : {"0", "2"})
        for (const Launch& launch : launches(3)) {
            CAPTURE(launch.name, victim);
            const ChildResult job = start(launch, {"--what", "throw", "--victim", victim});
            REQUIRE(plain(job.output) ==
                    "error: rank " + std::string(victim) + ": broken on purpose\n");
            REQUIRE(job.exit_code == 1);
        }
    REQUIRE(nothing_is_left());
}

TEST_CASE("a rank that is killed is named by the lowest rank that is left") {
    for (const char* victim : {"0", "2"})
        for (const Launch& launch : launches(3)) {
            CAPTURE(launch.name, victim);
            const ChildResult job = start(launch, {"--what", "kill", "--victim", victim});
            CAPTURE(job.output);
            REQUIRE(count(plain(job.output), "error: rank " + std::string(victim) +
                                                 " ended without saying why: was it killed?\n") ==
                    1);
            REQUIRE(count(job.output, "error:") == 1);
            REQUIRE(job.exit_code != 0);
            if (launch.name == "launcher")
                REQUIRE(count(job.output, "was ended by signal 9 (Killed)") == 1);
        }
    REQUIRE(nothing_is_left());
}

TEST_CASE("a rank that is killed is the cause, though the others are seen to fail first") {
    const ChildResult job =
        start(launches(3)[0], {"--what", "kill, others first", "--victim", "1"});
    CAPTURE(job.output);
    REQUIRE(has(job.output, "launcher: rank 1 (process "));
    REQUIRE(has(job.output, ") was ended by signal 9 (Killed)\n"));
    REQUIRE(job.exit_code == 128 + 9);
}

TEST_CASE("two ranks that are killed at the same moment: the last one that is left reports it") {
    for (const Launch& launch : launches(3)) {
        CAPTURE(launch.name);
        const ChildResult job = start(launch, {"--what", "kill, with rank 0", "--victim", "1"});
        CAPTURE(job.output);
        // Open MPI 5's mpirun ends the last one after a quarter of a second. On a busy machine only
        // mpirun itself can name a lost rank then.
        const bool is_named_by_mpirun =
            count(job.output, "error:") == 0 &&
            std::regex_search(job.output,
                              std::regex("prterun noticed that process rank [01] with PID "));
        if (!is_named_by_mpirun)
            REQUIRE(count(plain(job.output),
                          "error: rank 0 ended without saying why: was it killed?\n") == 1);
        REQUIRE(count(job.output, "error:") <= 1);
        REQUIRE(job.exit_code != 0);
    }
    REQUIRE(nothing_is_left());
}

TEST_CASE("a rank that is killed while all others are busy for longer than the time-out is named") {
    for (const char* victim : {"0", "1"}) {
        CAPTURE(victim);
        const ChildResult job = start(
            launches(3)[0], {"--what", "kill, others busy", "--victim", victim, "--timeout", "1"});
        CAPTURE(job.output);
        REQUIRE(count(plain(job.output), "error: rank " + std::string(victim) +
                                             " ended without saying why: was it killed?\n") == 1);
        REQUIRE(count(job.output, "error:") == 1);
        REQUIRE(job.exit_code != 0);
    }
}

TEST_CASE("after a rank was lost no run is possible, and the lowest rank that is left reports it") {
    for (const char* victim : {"0", "1"}) {
        CAPTURE(victim);
        const ChildResult job =
            start(launches(3)[0], {"--what", "kill", "--victim", victim, "--catch"});
        CAPTURE(job.output);
        REQUIRE(count(plain(job.output), "error: no further run is possible: rank " +
                                             std::string(victim) + " ended without saying why") ==
                1);
        REQUIRE(count(job.output, "error:") == 1);
        REQUIRE(job.exit_code != 0);
    }
}

TEST_CASE("a rank that ends by itself in the middle is named as well") {
    for (const Launch& launch : launches(3)) {
        CAPTURE(launch.name);
        const ChildResult job = start(launch, {"--what", "exit", "--victim", "1"});
        REQUIRE(plain(job.output) == "error: rank 1 ended without saying why: was it killed?\n");
        REQUIRE(job.exit_code != 0);
    }
}

void require_name_of_stopped(const Launch& launch, const std::string& victim) {
    const auto begin = std::chrono::steady_clock::now();
    const ChildResult job = start(launch, {"--what", "stop", "--victim", victim, "--timeout", "2"});
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    CAPTURE(launch.name, victim, job.output, taken.count());
    const std::string output = plain(job.output);
    REQUIRE(count(output, "error:") == 1);
    REQUIRE(count(output, "is it stopped?") == 1);
    if (victim == "1")
        REQUIRE(count(output,
                      "in barrier (call 2) for rank 1, which did not come (its last call was "
                      "all_gather (call 1)); rank 1 has said nothing for") == 1);
    REQUIRE(job.exit_code != 0);
    REQUIRE(taken.count() < 10);
    REQUIRE(nothing_is_left());
}

TEST_CASE("a rank that is stopped is named within the time-out") {
    for (const char* victim : {"0", "1"})
        require_name_of_stopped(launches(3).front(), victim);
}

TEST_CASE("a rank that is stopped is named within the time-out, by mpirun's ranks", "[.long]") {
    for (const char* victim : {"0", "1"})
        require_name_of_stopped(launches(3).back(), victim);
}

// Returns the output of a job that must fail in time and leave nothing behind.
std::string output_of_failure(const Launch& launch, const Words& words) {
    const auto begin = std::chrono::steady_clock::now();
    const ChildResult job = start(launch, words);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    CAPTURE(launch.name, words, job.output, taken.count());
    REQUIRE(job.exit_code != 0);
    REQUIRE(taken.count() < 20);
    REQUIRE(nothing_is_left());
    return plain(job.output);
}

void require_name_of_stopped_outside(const Launch& launch) {
    const std::string silent = " has said nothing for [1-4].[0-9] s: is it stopped\\?";
    const std::vector<std::pair<std::string, std::string>> cases{{"0", "busy"}, {"1", "end"}};
    for (const auto& [victim, others] : cases) {
        const std::string output = output_of_failure(
            launch, {"--what", "stop, others " + others, "--victim", victim, "--timeout", "1"});
        CAPTURE(output);
        // Where nothing interrupts the others, the launcher may have seen it as well.
        REQUIRE(std::regex_match(output, std::regex("(launcher: .*\n)?error: rank " + victim +
                                                    silent + "\n(launcher: .*\n)?")));
    }
}

TEST_CASE("a rank that is stopped outside a call is named within the time-out") {
    require_name_of_stopped_outside(launches(3).front());
}

TEST_CASE("a rank that is stopped outside a call is named, by mpirun's ranks", "[.long]") {
    require_name_of_stopped_outside(launches(3).back());
}

TEST_CASE("a rank that is stopped when its program has done its work") {
    for (const Launch& launch : launches(3)) {
        const std::string output = output_of_failure(
            launch, {"--what", "stop at the end", "--victim", "1", "--timeout", "1"});
        CAPTURE(output);
        REQUIRE(std::regex_search(
            output,
            std::regex("(launcher|error): rank 1 \\(process [0-9]+\\) is stopped, and the job "
                       "cannot end without it\n")));
    }
}

TEST_CASE("a rank that is stopped before MPI knows it ends the job", "[.weekly]") {
    if (!has_mpirun())
        return;
    allow_mpirun();
    keep_mpirun_quiet();
    const std::string stops =
        "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then kill -STOP $$; fi; exec \"$0\" --timeout 1";
    const ChildResult job =
        run_command({"mpirun", "--oversubscribe", "-n", "3", "sh", "-c", stops, DDP_SCENARIO});
    CAPTURE(job.output);
    REQUIRE(job.exit_code != 0);
    REQUIRE(count(job.output, "error:") == 1);
    REQUIRE(has(job.output,
                "error: waited 10.0 s in MPI_Init for the other ranks: is one of them "
                "stopped, or "));
    REQUIRE(nothing_is_left());
}

TEST_CASE("late, absent, in another call: named, and the next run works") {
    const std::vector<std::pair<std::string, std::string>> cases{
        {"late", "in barrier (call 2) for rank 1, which did not come"},
        {"absent", "in barrier (call 2) for rank 1, which has ended its part of the run"},
        {"other", "broadcast from rank 0 (call 2)"}};
    for (const auto& [what, message] : cases)
        for (const Launch& launch : launches(3)) {
            CAPTURE(launch.name, what);
            const ChildResult job =
                start(launch, {"--what", what, "--victim", "1", "--catch", "--timeout", "2"});
            CAPTURE(job.output);
            REQUIRE(count(plain(job.output), message) == 1);
            REQUIRE(count(job.output, "world size 3, local 0/3 1/3 2/3\n") == 1);
            REQUIRE(job.exit_code == 0);
        }
}

TEST_CASE("a rank that does not come back is ended") {
    const ChildResult job =
        start(launches(3)[0], {"--what", "busy", "--victim", "1", "--timeout", "1"});
    CAPTURE(job.output);
    REQUIRE(count(plain(job.output), "in barrier (call 2) for rank 1, which did not come") == 1);
    REQUIRE(count(job.output, "error:") == 1);
    REQUIRE(job.exit_code == 1);
    REQUIRE(nothing_is_left());
}

TEST_CASE("a rank that gets SIGTERM reports it before it ends") {
    for (const Launch& launch : launches(3)) {
        CAPTURE(launch.name);
        const ChildResult job = start(launch, {"--what", "term", "--victim", "1"});
        CAPTURE(job.output);
        REQUIRE(count(plain(job.output), "error: rank 1 was told to end (SIGTERM)\n") == 1);
        REQUIRE(count(job.output, "error:") == 1);
        REQUIRE(job.exit_code != 0);
    }
}

TEST_CASE("a status that is not 0 is passed on") {
    const ChildResult job = start(launches(3)[0], {"--status", "7", "--victim", "2"});
    REQUIRE(job.exit_code == 7);
    REQUIRE(count(job.output, "error") == 0);
}

TEST_CASE("a launcher that gets SIGTERM passes it on: its ranks report it, and end") {
    const ChildResult script = run_command(
        {"bash", "-c",
         "\"$0\" --processes 3 --what busy --victim 1 & "
         "until [[ $(wc -w </proc/$!/task/$!/children) == 3 ]]; do sleep 0.02; done; "
         "until grep -q SigBlk:.*4000$ /proc/$(pgrep -n -P $!)/status; do sleep 0.02; done; "
         "kill -TERM $!; wait $!",
         DDP_SCENARIO});
    CAPTURE(script.output);
    REQUIRE(script.exit_code != 0);
    REQUIRE(std::regex_search(plain(script.output),
                              std::regex("error: rank [012] was told to end \\(SIGTERM\\)\n")));
    REQUIRE(nothing_is_left());
}

TEST_CASE("when the launcher is killed, its ranks end with it") {
    const ChildResult script =
        run_command({"bash", "-c",
                     "\"$0\" --processes 3 --what busy --victim 1 & "
                     "until [[ $(wc -w </proc/$!/task/$!/children) == 3 ]]; do sleep 0.02; done; "
                     "kill -9 $!; wait $!; [[ $? == 137 ]]",
                     DDP_SCENARIO});
    REQUIRE(script.exit_code == 0);  // there were three, and the launcher was killed
    REQUIRE(nothing_is_left());
}

TEST_CASE("25 jobs at once do not disturb each other, and leave nothing behind") {
    const std::set<std::string> before = shared_memory();
    std::vector<std::future<ChildResult>> jobs;
    for (int i = 0; i < 25; i++)
        jobs.push_back(std::async(std::launch::async, [] { return start(launches(4)[0], {}); }));
    for (auto& job : jobs) {
        const ChildResult result = job.get();
        REQUIRE(result.output == "world size 4, local 0/4 1/4 2/4 3/4\n");
        REQUIRE(result.exit_code == 0);
    }
    REQUIRE(nothing_is_left());
    REQUIRE(shared_memory() == before);
}

TEST_CASE("processes that are started by hand, with torchrun's variables") {
    Descriptor listener = listen_at("127.0.0.1", 0);
    const std::string port = std::to_string(port_of(listener));
    listener = Descriptor();
    std::vector<std::future<ChildResult>> ranks;
    for (const char* rank : {"1", "2", "0"})
        ranks.push_back(std::async(std::launch::async, [=] {
            return run_command({DDP_SCENARIO}, {"RANK=" + std::string(rank), "WORLD_SIZE=3",
                                                "MASTER_ADDR=localhost", "MASTER_PORT=" + port});
        }));
    REQUIRE(ranks[0].get().output == "");
    REQUIRE(ranks[1].get().output == "");
    REQUIRE(ranks[2].get().output == "world size 3, local 0/3 1/3 2/3\n");
}

TEST_CASE("messages: the program shows what a message costs, and a deadlock") {
    const Program messages(DDP_MESSAGES);
    for (const auto& [how, ranks] : {std::pair("--ranks", 2), std::pair("--processes", 3)}) {
        if (how == std::string("--processes") && !processes_can_run_kernels(ranks))
            continue;
        CAPTURE(how, ranks);
        const ProgramRun run =
            messages.run({"--quick", how, std::to_string(ranks), "--link", "1GB/s,100us"});
        REQUIRE(run.count("The link is simulated: 1.00 GB/s") == 1);
        REQUIRE(run.count("both send, and neither receives") == 1);
        const Csv& file = run.csv;
        REQUIRE(file.header == Words{"bytes", "seconds", "model_seconds", "bytes_per_second"});
        REQUIRE(file.rows.size() == 10);
        for (std::size_t row = 0; row < file.rows.size(); row++)
            REQUIRE(file.number(row, "seconds") >= 1e-4 + file.number(row, "bytes") * 1e-9);
    }
    const ProgramRun alone = messages.run({"--ranks", "1"});
    REQUIRE(alone.count("A single rank has no other to send to: try --ranks 2.\n") == 1);
}

TEST_CASE("messages: a network that does not fit on one rank is trained by two") {
    if (!processes_can_run_kernels(2))
        return;
    const auto rows = [](const std::string& setting) {
        const Program messages("/usr/bin/env", {"CUDA_ON_CPU=" + setting, DDP_MESSAGES});
        const std::string output = messages.run({"--quick", "--processes", "2"}).output;
        std::smatch one, two;
        const std::string behind = output.substr(output.find("One step of a network"));
        REQUIRE(std::regex_search(behind, one, std::regex("\none rank   +([^ ].*)")));
        REQUIRE(std::regex_search(behind, two, std::regex("\ntwo ranks  +([^ ].*)")));
        return std::vector<std::string>{std::regex_replace(one.str(1), std::regex("  +"), " | "),
                                        std::regex_replace(two.str(1), std::regex("  +"), " | "),
                                        behind};
    };
    const auto large = rows("strict"), small = rows("memory=96");
    REQUIRE(std::regex_match(large[0], std::regex("129 MiB [|] - [|] [0-9.]+")));
    REQUIRE(std::regex_match(large[1], std::regex("64.5 MiB [|] 64.5 MiB [|] [0-9.]+")));
    REQUIRE(large[0].substr(large[0].rfind(' ')) == large[1].substr(large[1].rfind(' ')));
    REQUIRE(small[1] == large[1]);
#if !defined(DDP_CUDA)
    REQUIRE(small[0] == "out of memory | - | -");
    REQUIRE(count(small[2], "asked for 136380416 bytes") == 1);
#endif
}

TEST_CASE("impossible requests get one sentence") {
    const auto said = [](const Words& words, const Words& environment) {
        const ChildResult result = run_command(Words{DDP_SCENARIO} + words, environment);
        REQUIRE(result.exit_code == 2);
        REQUIRE(count(result.output, "\n") == 1);
        return result.output;
    };
    REQUIRE(said({}, {"SLURM_PROCID=0"}) ==
            "error: srun has started this process without a way to find the others: use srun "
            "--mpi=pmix.\n");
    REQUIRE(said({"--ranks", "3"}, {"OMPI_COMM_WORLD_SIZE=2"}) ==
            "error: --ranks contradicts mpirun, which has already decided how many ranks there "
            "are: leave it out.\n");
    REQUIRE(said({"--processes", "3"}, {"OMPI_COMM_WORLD_SIZE=2"})
                .starts_with("error: --processes contradicts mpirun"));
    REQUIRE(said({"--processes", "65"}, {}) ==
            "error: --processes needs a whole number from 1 to 64, not '65'.\n");
    REQUIRE(said({}, {"RANK=0"})
                .starts_with(
                    "error: The environment variable WORLD_SIZE is not set, but others of RANK"));
    const Words four{"WORLD_SIZE=2", "MASTER_ADDR=localhost", "MASTER_PORT=70000", "RANK=0"};
    REQUIRE(said({}, four) ==
            "error: The environment variable MASTER_PORT is '70000'; it must be a whole number "
            "from 1 to 65535.\n");
    REQUIRE(said({"--ranks", "2"},
                 {"WORLD_SIZE=2", "MASTER_ADDR=localhost", "MASTER_PORT=7000", "RANK=0"})
                .starts_with("error: --ranks contradicts the environment variable WORLD_SIZE"));
    const ChildResult batch_script =
        run_command({DDP_SCENARIO, "--ranks", "2"}, {"SLURM_PROCID=0", "SLURM_JOB_ID=1"});
    REQUIRE(batch_script.exit_code == 0);
}

}  // namespace
}  // namespace ddp::test
