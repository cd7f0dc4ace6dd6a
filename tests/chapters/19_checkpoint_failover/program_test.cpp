// The chapter's program: what it prints and writes, under every launcher.
#include "19_checkpoint_failover/state/checkpoints.hpp"

#include <chrono>
#include <fstream>
#include <iostream>
#include <regex>
#include <thread>

#include "05_ranks/support/mpi_start.hpp"
#include "19_checkpoint_failover/job/preemption.hpp"
#include "common/report/bench.hpp"
#include "tests/chapters/support/jobs.hpp"
#include "tests/chapters/support/pictures.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const Words small{"--batch", "4", "--epochs", "2", "--every", "5", "--learning-rate", "0.02"};

const std::string path = CHECKPOINT_FAILOVER_PROGRAM;
const Program program(path);

}  // namespace

TEST_CASE("checkpoint_failover: killed, and the same to the bit, for threads and processes") {
    const Pictures pictures(400, 50);
    for (const auto& [how, ranks] : {std::pair{"--processes", 4}, std::pair{"--ranks", 3}}) {
        if (std::string(how) == "--processes" && !processes_can_run_kernels(ranks))
            continue;
        CAPTURE(how);
        const ProgramRun run = program.run(
            Words{"--quick", how, std::to_string(ranks), "--data", pictures.folder()} + small);
        REQUIRE(run.count("to the bit.") == 1);
        REQUIRE(run.count("kill -9 of rank " + std::to_string(ranks - 1)) == 1);
        REQUIRE(run.count("one rank, under another name first     40     0") == 1);
        const Csv& attempts = run.csv;
        int kills = 0, losses = 0, checkpoints = 0;
        for (std::size_t row = 0; row < attempts.rows.size(); row++) {
            kills += attempts.text(row, "what").starts_with("kill -9");
            losses += attempts.text(row, "what") == "loss";
            checkpoints += attempts.text(row, "what") == "checkpoint";
            REQUIRE(attempts.number(row, "end_s") >= attempts.number(row, "begin_s"));
        }
        REQUIRE(kills == 1);
        REQUIRE(losses > 4);
        REQUIRE(checkpoints > 4);
    }
    REQUIRE(nothing_is_left(path));
}

TEST_CASE("checkpoint_failover: one training run, one to eight ranks, and a call after its end") {
    const TemporaryFolder folder;
    const Pictures pictures(400, 50);
    const Words train{"--train", "--data", pictures.folder()};
    const auto run = [&](const Launch& launch, const Words& more) {
        CAPTURE(launch.name);
        return last_hash(run_job(launch, train + small + more).output);
    };
    const std::string name = (folder / "run").string();
    std::string threads;
    for (const std::string ranks : {"1", "3", "8"}) {
        const std::string hash = run({"threads", {path, "--ranks", ranks}, {}}, {});
        if (ranks == "3")
            threads = hash;
    }
    for (const Launch& launch : launches(path, 3)) {
        REQUIRE(run(launch, {"--folder", name + launch.name}) == threads);
        // Another call, with another number of ranks, finds that all is done.
        REQUIRE(run({"threads", {path, "--ranks", "2"}, {}}, {"--folder", name + launch.name}) ==
                threads);
    }
}

TEST_CASE("checkpoint_failover: a training that is done already says how good it is") {
    if (!processes_can_run_kernels(2))
        return;
    const TemporaryFolder folder;
    const Pictures pictures(400, 50);
    const Words where{"--data", pictures.folder(), "--folder", (folder / "run").string()};
    const auto end_of = [](const ProgramRun& run, const std::string& word) {
        const std::size_t at = run.output.rfind(word);
        REQUIRE(at != std::string::npos);
        return run.output.substr(at);
    };
    const auto supervised = [&] {
        const ProgramRun run =
            program.run(Words{"--supervise", "--processes", "2"} + where + small);
        return end_of(run, "done in 1 attempt: test accuracy ");
    };
    const std::string first = supervised();
    REQUIRE(supervised() == first);
    // The same by hand, and with another number of ranks.
    const std::string accuracy = first.substr(first.find("test accuracy"), 19);
    const ProgramRun by_hand = program.run(Words{"--train", "--ranks", "3"} + where + small);
    REQUIRE(by_hand.count("epoch 2  " + accuracy) == 1);
}

// A mpirun like that of Open MPI 5: it refuses -q.
constexpr const char* mpirun_5 = R"(#!/bin/sh
for word; do
    case $word in
        -q) printf '%s\n' ------ 'An unrecognized option was included:' '  Option: -q' ------; exit 213 ;;
        /*) break ;;
    esac
done
PATH=${PATH#*:} exec mpirun "$@"
)";

TEST_CASE(
    "checkpoint_failover: the supervisor starts ranks by mpirun, also by that of Open MPI 5") {
    if (!processes_can_run_kernels(4))
        return;
    if (!has_mpirun())
        return;
    const TemporaryFolder folder;
    const Pictures pictures(400, 50);
    std::filesystem::create_directory(folder / "bin");
    const std::filesystem::path mpirun = folder / "bin" / "mpirun";
    std::ofstream(mpirun) << mpirun_5;
    std::filesystem::permissions(mpirun, std::filesystem::perms::owner_all);
    const auto supervise = [&] {
        const std::string path_variable =
            "PATH=" + mpirun.parent_path().string() + ":" + std::getenv("PATH");
        return run_command(Words{path, "--supervise", "--mpirun", "--ranks", "2", "--data",
                                 pictures.folder(), "--folder", (folder / "run").string()} +
                               small,
                           {path_variable});
    };
    const ProgramRun run(supervise());
    REQUIRE(run.count("done in 1 attempt") == 1);
    // What a mpirun says that starts nothing is the cause, and it is not asked again.
    std::ofstream(mpirun) << "#!/bin/sh\necho no ranks today\nexit 1\n";
    const ChildResult refused = supervise();
    REQUIRE(count(refused.output, "attempt ") == 1);
    REQUIRE(count(refused.output,
                  "error: the job ended with exit status 1 and without an error "
                  "message; the last lines that it printed:\n    no ranks today\n") == 1);
}

TEST_CASE("checkpoint_failover: the supervisor says that a checkpoint is lost") {
    if (!has_mpirun())
        return;
    const TemporaryFolder folder;
    const Pictures pictures(400, 50);
    std::filesystem::create_directory(folder / "bin");
    const std::filesystem::path mpirun = folder / "bin" / "mpirun";
    // The first job saves a checkpoint that nobody finds, and fails.
    std::ofstream(mpirun) << R"(#!/bin/sh
[ -e "$0.ran" ] && PATH=${PATH#*:} exec mpirun "$@"
touch "$0.ran"
echo '@ 0 started 0 nowhere 0'
echo '@ 0 saved 50'
echo 'error: the lights went out'
exit 1
)";
    std::filesystem::permissions(mpirun, std::filesystem::perms::owner_all);
    const ProgramRun run(
        run_command(Words{path, "--supervise", "--mpirun", "--ranks", "2", "--data",
                          pictures.folder(), "--folder", (folder / "run").string()} +
                        small,
                    {"PATH=" + mpirun.parent_path().string() + ":" + std::getenv("PATH")}));
    REQUIRE(run.count("attempt 1 ended after step 50: the lights went out\n") == 1);
    REQUIRE(run.count("note: step 50 was saved and cannot be found: the training goes on after "
                      "step 0.\n") == 1);
    REQUIRE(run.count("done in 2 attempts") == 1);
}

TEST_CASE("checkpoint_failover: nodes that share no folder each keep checkpoints") {
    if (!has_mpirun()) {
        std::cout << "SKIPPED: ranks on two nodes (no mpirun, or built without MPI)" << std::endl;
        return;
    }
    const TemporaryFolder folder;
    const Pictures pictures(400, 50);
    const std::string checkpoints = (folder / "on-%h").string();
    const auto train = [&](const std::string& epochs) {
        // Ranks 0 and 1 are on the node a, and 2 and 3 on b. (Not by two commands with a colon
        // between them: the mpirun of Open MPI 5.0.7 crashes on these.)
        const Words on_two_nodes{"sh", "-c",
                                 "[ $OMPI_COMM_WORLD_RANK -lt 2 ] && DDP_NODE=a || DDP_NODE=b\n"
                                 "export DDP_NODE; exec \"$0\" \"$@\""};
        allow_mpirun();
        keep_mpirun_quiet();
        return run_command(Words{"mpirun", "--oversubscribe", "--bind-to", "none", "-n", "4"} +
                           on_two_nodes +
                           Words{path, "--train", "--data", pictures.folder(), "--folder",
                                 checkpoints, "--batch", "4", "--every", "5", "--epochs", epochs});
    };
    const ProgramRun first(train("2"));
    DiskFolder a((folder / "on-a").string()), b((folder / "on-b").string());
    REQUIRE(Checkpoints(a, 9).steps() == Checkpoints(b, 9).steps());
    const std::string newest = Checkpoints::file_name(Checkpoints(a, 9).steps().at(0));
    REQUIRE(a.read(newest) == b.read(newest));

    // Rank 0's node has lost its disk: rank 2 has the newest.
    std::filesystem::remove_all(folder / "on-a");
    const ProgramRun second(train("2"));
    REQUIRE(count(second.output, "from rank 2's checkpoint") == 1);
    REQUIRE(last_hash(second.output) == last_hash(first.output));
    REQUIRE(a.read(newest) == b.read(newest));

    // Another training's checkpoints are not touched.
    const ChildResult other = train("3");
    CAPTURE(other.output);
    REQUIRE(other.exit_code != 0);
    REQUIRE(count(other.output, "whose epochs was 2, and now it is 3") == 1);
}

TEST_CASE("checkpoint_failover: ranks in containers of their own are nodes of their own") {
    const Words container{"unshare", "--user", "--map-root-user"};
    if (!has_mpirun() || run_command(container + Words{"true"}).exit_code != 0) {
        std::cout << "SKIPPED: ranks in user namespaces of their own (no mpirun, or none can be "
                     "made here)"
                  << std::endl;
        return;
    }
    const Pictures pictures(400, 50);
    const Words train{"--train", "--data", pictures.folder()};
    // What the sentence says that refuses them (06): each tells its container the node's name.
    const Launch nodes{"mpirun",
                       Words{"mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2", "sh",
                             "-c", "DDP_NODE=$(hostname)-$OMPI_COMM_WORLD_RANK exec \"$@\"", "sh"} +
                           container + Words{path},
                       {}};
    const Launch threads{"threads", {path, "--ranks", "2"}, {}};
    REQUIRE(last_hash(run_job(nodes, train + small).output) ==
            last_hash(run_job(threads, train + small).output));
}

TEST_CASE("checkpoint_failover: a damaged checkpoint is named, and the one before is used") {
    const TemporaryFolder folder;
    const Pictures pictures(400, 50);
    const std::string checkpoints = (folder / "run").string();
    const Words train =
        Words{"--train", "--ranks", "2", "--folder", checkpoints, "--data", pictures.folder()} +
        small;
    const ProgramRun first = program.run(train);
    DiskFolder disk(checkpoints);
    const std::vector<int> steps = Checkpoints(disk, 9).steps();
    const std::string newest = Checkpoints::file_name(steps.at(0));
    std::vector<std::uint8_t> bytes = disk.read(newest);
    bytes[bytes.size() / 2] ^= 1;
    disk.write(newest, {bytes});
    const ProgramRun second = program.run(train);
    REQUIRE(count(second.output, "note: '" + newest +
                                     "' is damaged: its checksum does not match its bytes. The "
                                     "one before it is used.") == 1);
    REQUIRE(count(second.output, "continues after step " + std::to_string(steps.at(1))) == 1);
    REQUIRE(last_hash(second.output) == last_hash(first.output));
    // If all are damaged, the job does not begin again without a word.
    for (const int step : Checkpoints(disk, 9).steps())
        disk.write(Checkpoints::file_name(step), {bytes});
    const ChildResult third = program.call(train);
    CAPTURE(third.output);
    REQUIRE(third.exit_code == 1);
    REQUIRE(count(third.output, "no checkpoint in '" + checkpoints + "' is whole: '" + newest +
                                    "' is damaged") == 1);
}

TEST_CASE("checkpoint_failover: its temporary folder goes with it, however it ends") {
    if (!processes_can_run_kernels(2))
        return;
    const Pictures pictures(400, 50);
    for (const std::string how : {"--processes", "--train --processes"})
        for (const std::string signal : {"TERM", "KILL"}) {
            CAPTURE(how, signal);
            const TemporaryFolder folder;
            const std::string place = (folder / "").parent_path().string();
            const ChildResult script =
                run_command({"bash", "-c",
                             "\"$0\" " + how +
                                 " 2 --data \"$1\" & until ls \"$TMPDIR\"/ddp_checkpoints_*; do :; "
                                 "done; kill -" +
                                 signal + " $!; wait",
                             path, pictures.folder()},
                            {"TMPDIR=" + place});
            REQUIRE(script.exit_code == 0);  // -1 if no folder has come
            REQUIRE(nothing_is_left(path));
            for (const Stopwatch watch; !std::filesystem::is_empty(place);) {
                REQUIRE(watch.seconds() < 5);
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
            }
        }
}

TEST_CASE("checkpoint_failover: a supervisor that is told to end has the job save, and says so") {
    if (!processes_can_run_kernels(2))
        return;
    const TemporaryFolder folder;
    const Pictures pictures(400, 50);
    const std::string run = (folder / "run").string();
    // When it has saved something, is told. (Its epochs would take minutes.)
    const auto tell_to_end = [&] {
        return run_command({"bash", "-c",
                            "newest() { ls \"$1\" 2>/dev/null | grep 'safetensors$' | tail -1; }\n"
                            "before=$(newest \"$1\"); \"$0\" --folder \"$@\" & job=$!\n"
                            "while now=$(newest \"$1\"); [[ -z $now || $now == \"$before\" ]]; do "
                            "sleep 0.02; done\n"
                            "kill -TERM $job; wait $job",
                            path, run, "--supervise", "--processes", "2", "--data",
                            pictures.folder(), "--batch", "4", "--every", "7", "--epochs", "5000",
                            "--learning-rate", "0.02"});
    };
    const std::regex saved(
        "told to end \\(SIGTERM\\): step ([0-9]+) is saved; the same command, with "
        "the same --folder, goes on from there\n");
    int before = 0;
    for (int i = 0; i < 2; i++) {
        const ChildResult job = tell_to_end();
        CAPTURE(job.output);
        std::smatch found;
        REQUIRE(job.exit_code == status_of_preemption);
        REQUIRE(count(job.output, "attempt 1: ") == 1);
        REQUIRE(count(job.output, "attempt 2") == 0);
        REQUIRE(count(job.output, "error") == 0);
        REQUIRE(std::regex_search(job.output, found, saved));
        const int step = std::stoi(found[1]);
        REQUIRE(step > before);
        REQUIRE(std::filesystem::exists(folder / "run" / Checkpoints::file_name(step)));
        before = step;
    }
    REQUIRE(nothing_is_left(path));
}

TEST_CASE("checkpoint_failover: no temporary folder stays where there is no process to remove it") {
    if (!user_limits_count()) {
        std::cout << "SKIPPED: a limit of processes (not root, or no setpriv)" << std::endl;
        return;
    }
    for (int processes = 2; processes <= 10; processes++) {
        const TemporaryFolder folder;
        const std::string place = (folder / "").parent_path().string();
        std::filesystem::permissions(place, std::filesystem::perms::all);
        const ChildResult result =
            run_limited(processes, {path, "--quick", "--ranks", "4"}, {"TMPDIR=" + place});
        CAPTURE(processes, result.output);
        REQUIRE(result.exit_code == 1);
        REQUIRE(count(result.output, "error: ") == 1);
        REQUIRE(std::filesystem::is_empty(place));
    }
}

TEST_CASE("checkpoint_failover: bad input in one sentence") {
    REQUIRE(program.refusal({"--supervise"}) ==
            "error: --supervise and --hosts need a --folder for the checkpoints.\n");
    REQUIRE(program.refusal({"--batch", "1025"}) ==
            "error: --batch needs a whole number from 1 to 1024, not '1025'.\n");
    REQUIRE(count(program.refusal({"--hosts", "a:0", "--folder", "x"}), "not 'a:0'.") == 1);
    const Pictures pictures(400, 50);
    REQUIRE(program.refusal({"--train", "--ranks", "8", "--data", pictures.folder()}) ==
            "error: --batch 64 is more than the 50 samples that each of 8 ranks has: take a "
            "smaller batch or fewer ranks.\n");
    REQUIRE(count(program.refusal({"--train", "--ranks", "2", "--batch", "4", "--folder",
                                   "/proc/nothing", "--data", pictures.folder()},
                                  1),
                  "'/proc/nothing' cannot be made") == 1);
    REQUIRE(has(run_command({path, "--quick"}, {"TMPDIR=/nonexistent"}).output,
                "cannot be made (No such file or directory): give --folder, or TMPDIR, a folder"));
}

}  // namespace ddp::test
