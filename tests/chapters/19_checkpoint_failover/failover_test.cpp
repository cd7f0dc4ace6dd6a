// The proof: whichever process is killed, at whatever moment, the training ends with the bits of an
// undisturbed run. Also: what else may happen to a supervised job.
#include <csignal>
#include <functional>
#include <iostream>
#include <set>
#include <thread>

#include "05_ranks/support/mpi_start.hpp"
#include "19_checkpoint_failover/job/launch_job.hpp"
#include "19_checkpoint_failover/job/preemption.hpp"
#include "common/report/bench.hpp"
#include "common/report/options.hpp"
#include "tests/chapters/19_checkpoint_failover/supervised.hpp"
#include "tests/chapters/support/jobs.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

std::string failure_of(const Training& training, const Pictures& pictures,
                       const SupervisorOptions& options, const Supervisor::Watch& watch) {
    try {
        supervise(training, pictures, options, watch);
        return "";
    } catch (const std::runtime_error& error) {
        return error.what();
    }
}

// Returns whether the process has ended, or ends within a second: it is gone, or a zombie.
bool will_die(pid_t process) {
    const std::string file = "/proc/" + std::to_string(process) + "/stat";
    for (const Stopwatch watch; watch.seconds() < 1;) {
        const std::string state = contents(file);
        if (state.empty() || state.find(") Z ") != state.npos)
            return true;
        std::this_thread::yield();
    }
    return false;
}

// Returns the hash of an undisturbed training run.
const std::string& calm_hash() {
    static const std::string hash = supervise({}, Pictures(1000, 100), {}).hash;
    return hash;
}

// `kills` in all, some in each of several trainings.
void kill_at_random(int kills, int in_each) {
    const Pictures pictures(1000, 100);
    const Training training;
    const Outcome calm = supervise(training, pictures, {});
    REQUIRE(calm.attempts.size() == 1);
    REQUIRE(calm.hash.size() == 16);
    const double length_s = calm.attempts[0].end_s - calm.attempts[0].begin_s;
    int done = 0, attempts = 0;
    for (std::uint32_t seed = 1; done < kills; seed++) {
        CAPTURE(seed, done);
        RandomKills killer(seed, std::min(in_each, kills - done), length_s);
        const Outcome outcome = supervise(training, pictures, {.max_restarts = 2 * in_each},
                                          [&](SupervisedProcess& job, const Attempt& attempt,
                                              double now_s) { killer.watch(job, attempt, now_s); });
        REQUIRE(outcome.hash == calm.hash);
        REQUIRE(outcome.torn == 0);
        done += killer.done();
        attempts += static_cast<int>(outcome.attempts.size());
        REQUIRE(seed < 10 * static_cast<std::uint32_t>(kills));  // kills that come too late
    }
    std::cout << done << " kills, " << attempts
              << " attempts: 0 torn checkpoints, 0 lost runs, one hash" << std::endl;
    REQUIRE(nothing_is_left(CHECKPOINT_FAILOVER_PROGRAM));
}

}  // namespace

TEST_CASE("failover: killed at random moments, the end is the same to the bit") {
    if (!processes_can_run_kernels(4))
        return;
    kill_at_random(4, 2);
}

TEST_CASE("failover: the same, 100 times", "[.weekly]") {
    if (!processes_can_run_kernels(4))
        return;
    kill_at_random(100, 5);
}

TEST_CASE("failover: a stopped rank is noticed within the time-out") {
    if (!processes_can_run_kernels(4))
        return;
    const Pictures pictures(1000, 100);
    for (const int rank : {0, 2}) {
        Training training;
        training.timeout_s = 3;
        Faults faults({Fault{Fault::Kind::stop, rank, 20}});
        const Outcome outcome = supervise(training, pictures, {.max_restarts = 3},
                                          [&](SupervisedProcess& job, const Attempt& attempt,
                                              double now_s) { faults.watch(job, attempt, now_s); });
        CAPTURE(rank, outcome.attempts[0].cause);
        REQUIRE(outcome.attempts.size() >= 2);
        // The ranks notice within their time-out, and the launcher gives them two seconds to report
        // it.
        REQUIRE(outcome.attempts[0].noticed_s - faults.happened().at(0).time_s <
                training.timeout_s + 3);
        REQUIRE(outcome.hash == calm_hash());
    }
    REQUIRE(nothing_is_left(CHECKPOINT_FAILOVER_PROGRAM));
}

// Returns the notes of an attempt.
std::string notes_of(const Attempt& attempt) {
    std::string notes;
    for (const TimedStatus& each : attempt.status_lines)
        if (each.status.what == "note")
            notes += each.status.value + "\n";
    return notes;
}

TEST_CASE("failover: a folder that is removed during the training is made again, with a note") {
    if (!processes_can_run_kernels(4))
        return;
    const Pictures pictures(1000, 100);
    std::filesystem::path folder;
    const Outcome outcome = supervise(
        {}, pictures, {.max_restarts = 0}, [&](SupervisedProcess&, const Attempt& attempt, double) {
            if (!folder.empty() || attempt.status_lines.empty() ||
                attempt.status_lines.back().status.what != "saved")
                return;
            for (const std::string& word : attempt.command)
                if (word.starts_with("--folder="))
                    folder = word.substr(9);
            std::filesystem::rename(folder, folder.string() + ".gone");  // at one moment
        });
    REQUIRE(has(notes_of(outcome.attempts.at(0)),
                "the folder of the checkpoints had been removed: it was made again for that of "
                "step "));
    REQUIRE(outcome.torn == 0);
    REQUIRE(outcome.hash == calm_hash());
}

TEST_CASE("failover: a node's ranks are killed at once") {
    if (!processes_can_run_kernels(4))
        return;
    const Pictures pictures(1000, 100);
    Faults faults({Fault{Fault::Kind::kill, 2, 20, 2}});
    bool are_gone = false;
    const Outcome outcome = supervise(
        {}, pictures, {.max_restarts = 1},
        [&](SupervisedProcess& job, const Attempt& attempt, double now_s) {
            const std::size_t before = faults.happened().size();
            faults.watch(job, attempt, now_s);
            if (faults.happened().size() > before)
                are_gone = will_die(attempt.process_of(2)) && will_die(attempt.process_of(3));
        });
    CAPTURE(outcome.attempts[0].cause);
    REQUIRE(faults.happened().at(0).text() == "kill -9 of ranks 2 and 3");
    REQUIRE(are_gone);
    REQUIRE(outcome.attempts.size() == 2);
    REQUIRE(outcome.hash == calm_hash());
    REQUIRE(nothing_is_left(CHECKPOINT_FAILOVER_PROGRAM));
}

TEST_CASE("failover: threads die together, and stop together") {
    const Pictures pictures(1000, 100);
    Training training;
    training.ranks = {"--ranks", "4"};
    using Kind = Fault::Kind;
    Faults faults({Fault{Kind::kill, 3, 10}, Fault{Kind::kill_while_saving, 0, 25},
                   Fault{Kind::stop, 1, 35}});
    const Outcome outcome = supervise(training, pictures, {.max_restarts = 3, .silence_s = 6},
                                      [&](SupervisedProcess& job, const Attempt& attempt,
                                          double now_s) { faults.watch(job, attempt, now_s); });
    REQUIRE(outcome.attempts.size() == 4);
    REQUIRE(outcome.attempts[2].cause ==
            "no line has come from the job for 6.00 s: it has stopped");
    REQUIRE(outcome.torn == 0);
    REQUIRE(outcome.hash == calm_hash());
}

TEST_CASE("failover: by mpirun") {
    if (!processes_can_run_kernels(4))
        return;
    if (!has_mpirun()) {
        std::cout << "SKIPPED: there is no mpirun" << std::endl;
        return;
    }
    allow_mpirun();
    const Pictures pictures(1000, 100);
    Training training;
    training.by_mpirun = true;
    training.ranks = {"-n", "4"};
    Faults faults({Fault{Fault::Kind::kill, 2, 10}});
    const Outcome outcome = supervise(training, pictures, {.max_restarts = 1},
                                      [&](SupervisedProcess& job, const Attempt& attempt,
                                          double now_s) { faults.watch(job, attempt, now_s); });
    REQUIRE(outcome.attempts.size() == 2);
    REQUIRE(outcome.hash == calm_hash());
    REQUIRE(nothing_is_left(CHECKPOINT_FAILOVER_PROGRAM));
}

// The steps at which the attempt's ranks were told to end.
std::multiset<std::int64_t> preempted_at(const Attempt& attempt) {
    std::multiset<std::int64_t> steps;
    for (const TimedStatus& each : attempt.status_lines)
        if (each.status.what == "preempted")
            steps.insert(each.status.step);
    return steps;
}

TEST_CASE("preemption: all ranks end behind one step, and another job goes on with the same bits") {
    if (!processes_can_run_kernels(4))
        return;
    const Pictures pictures(1000, 100);
    // SIGTERM to one rank, to the launcher alone, to all of them at once, to what holds all ranks.
    using Tell = std::function<void(SupervisedProcess&, const Attempt&)>;
    const Tell rank_2 = [](SupervisedProcess&, const Attempt& a) {
        kill(a.process_of(2), SIGTERM);
    };
    const Tell launcher = [](SupervisedProcess& job, const Attempt&) {
        kill(job.process(), SIGTERM);
    };
    const Tell group = [](SupervisedProcess& job, const Attempt&) { job.signal(SIGTERM); };
    const Tell known = [](SupervisedProcess& job, const Attempt&) { job.ask_to_end(); };
    struct Case {
        const char* name;
        bool by_mpirun;
        Words ranks;
        Tell tell;
    };
    std::vector<Case> cases{{"one rank", false, {"--processes", "4"}, rank_2},
                            {"the launcher", false, {"--processes", "4"}, launcher},
                            {"the group", false, {"--processes", "4"}, group},
                            {"threads", false, {"--ranks", "4"}, launcher}};
    if (has_mpirun())
        cases.push_back({"mpirun", true, {"-n", "4"}, known});
    allow_mpirun();
    for (const auto& [name, by_mpirun, ranks, tell] : cases) {
        CAPTURE(name);
        const TemporaryFolder folder;
        const std::string checkpoints = (folder / "run").string();
        Training training{.ranks = ranks, .by_mpirun = by_mpirun};
        bool is_told = false;
        int starts = 0;
        Supervisor preempted(
            {.max_restarts = 3},
            [&](const auto&) {
                starts++;
                return training.command(checkpoints, pictures.folder()) + Words{"--every=1000"};
            },
            [&](SupervisedProcess& job, const Attempt& attempt, double) {
                if (!is_told && attempt.last_step() >= 20) {
                    tell(job, attempt);
                    is_told = true;
                }
            });
        const std::vector<Attempt> attempts = preempted.run();
        const Attempt& first = attempts.back();
        CAPTURE(first.cause);
        REQUIRE(starts == 1);  // it is not tried again
        REQUIRE(first.status == (by_mpirun ? first.status : status_of_preemption));
        REQUIRE(first.is_preempted());
        const std::multiset<std::int64_t> steps = preempted_at(first);
        REQUIRE(steps.size() == 4);
        REQUIRE(*steps.begin() == *steps.rbegin());
        REQUIRE(*steps.begin() > 20);
        // Elsewhere: other processes, started in another way.
        training = {.ranks = {"--ranks", "4"}};
        Supervisor goes_on({.max_restarts = 0}, [&](const auto&) {
            return training.command(checkpoints, pictures.folder()) + Words{"--every=1000"};
        });
        const Attempt second = goes_on.run().back();
        std::int64_t from = 0;
        double copied = 0;
        std::string hash;
        for (const TimedStatus& each : second.status_lines) {
            if (each.status.what == "resumed")
                from = each.status.step;
            if (each.status.what == "copied")
                copied = std::stod(each.status.value);
            if (each.status.what == "done")
                hash = each.status.value;
        }
        REQUIRE(from == *steps.begin());
        REQUIRE(hash == calm_hash());
        REQUIRE(copied > 0);
        REQUIRE(copied < second.end_s - second.begin_s);
    }
    REQUIRE(nothing_is_left(CHECKPOINT_FAILOVER_PROGRAM));
}

TEST_CASE("supervisor: gives up after max_restarts, with the first cause") {
    const Pictures pictures(1000, 100);
    const std::string failure = failure_of(
        {}, pictures, {.max_restarts = 1}, [&](SupervisedProcess&, const Attempt& attempt, double) {
            // Another rank in each attempt.
            const int rank = attempt.begin_s < 0.1 ? 1 : 2;
            if (const pid_t process = attempt.process_of(rank); process != 0)
                kill(process, SIGKILL);
        });
    CAPTURE(failure);
    REQUIRE(
        failure.starts_with("the job has failed 2 times, and --max-restarts is 1; the first "
                            "cause was: rank 1 (process "));
    REQUIRE(nothing_is_left(CHECKPOINT_FAILOVER_PROGRAM));
}

TEST_CASE("supervisor: a failure that would happen again is not retried") {
    const Pictures pictures(1000, 100);
    Training training;
    training.ranks = {"--processes", "200"};
    REQUIRE(failure_of(training, pictures, {}, {}) ==
            "--processes needs a whole number from 1 to 64, not '200'.");
    Supervisor nobody({}, [](const auto&) { return std::vector<std::string>(); });
    REQUIRE_THROWS_WITH(nobody.run(),
                        "no node is left to run the job; its first failure was: none");
    Supervisor unknown({},
                       [](const auto&) { return std::vector<std::string>{"/no-such-program-9"}; });
    REQUIRE_THROWS_WITH(unknown.run(),
                        "cannot start /no-such-program-9: No such file or directory");
    // A launcher that starts nothing: its words are the cause.
    int starts = 0;
    Supervisor refused({}, [&](const auto&) {
        starts++;
        return Words{"sh", "-c",
                     "echo ------; echo not as root; echo; echo and not today; exit 213"};
    });
    REQUIRE_THROWS_WITH(refused.run(),
                        "the job ended with exit status 213 and without an error message; the last "
                        "lines that it printed:\n    not as root\n    and not today");
    REQUIRE(starts == 1);
    // One that was killed may have been killed by chance.
    starts = 0;
    Supervisor killed({.max_restarts = 1}, [&](const auto&) {
        starts++;
        return Words{"sh", "-c", "kill -9 $$"};
    });
    REQUIRE_THROWS(killed.run());
    REQUIRE(starts == 2);
}

TEST_CASE("supervisor: a job is ended with all that it has started") {
    const Stopwatch watch;
    {
        SupervisedProcess job({"sh", "-c", "sleep 1000 & sleep 1000"});
        job.read_lines([](const std::string&) {});
    }
    REQUIRE(watch.seconds() < 5);
    std::string said;
    SupervisedProcess stubborn({"sh", "-c",
                                "trap 'echo not yet' TERM; echo ready; while :; do sleep "
                                "0.05; done"});
    const auto listen = [&](const std::string& line) { said += line + ";"; };
    while (said.empty())
        stubborn.read_lines(listen);
    stubborn.end(0.5, listen);
    REQUIRE(said.starts_with("ready;"));
    REQUIRE(stubborn.status() == 128 + SIGKILL);
}

TEST_CASE("supervisor: a job whose steps are slow may be silent for ten of them") {
    // Steps of half a second, then silence for six of them, and then for good.
    const std::string job =
        "echo '@ 0 resumed 40 0'; echo '@ 0 step 41 0 0'\n"
        "for i in 42 43 44; do sleep 0.5; echo \"@ 0 reached $i\"; done\n"
        "sleep 3; echo '@ 0 saved 40'; sleep 1000";
    double slowest_s = 0, saved_s = 0, last_s = 0;
    Supervisor supervisor(
        {.max_restarts = 0, .silence_s = 2},
        [&](const auto&) {
            return Words{"sh", "-c", job};
        },
        [&](SupervisedProcess&, const Attempt& attempt, double now_s) {
            slowest_s = attempt.slowest_step_s;
            saved_s = attempt.time_of("saved");
            last_s = now_s;
        });
    REQUIRE_THROWS_WITH(supervisor.run(), ContainsSubstring("no line has come from the job for "));
    REQUIRE(slowest_s >= 0.5);
    REQUIRE(saved_s > 4.5);
    REQUIRE(last_s - saved_s >= 10 * slowest_s - 0.1);
}

TEST_CASE("status line: written and read back, and refused if it is none") {
    const StatusLine status{3, "step", 120, "61440 0.43"};
    REQUIRE(status.line() == "@ 3 step 120 61440 0.43");
    REQUIRE(StatusLine::from(status.line()) == status);
    REQUIRE(StatusLine::from("@ 0 started 0") == StatusLine{0, "started", 0, ""});
    for (const char* line :
         {"", "@", "@ x started 0", "@ 1 met", "@ 1 started x", "loss 1 2 3", "@1 a 2"})
        REQUIRE(!StatusLine::from(line));
}

TEST_CASE("nodes: their list, and which of them answer") {
    REQUIRE(parse_nodes("a,b:3") == std::vector<NodeSlots>{{"a", 1}, {"b", 3}});
    REQUIRE(parse_nodes("").empty());
    for (const char* wrong : {",a", "a:", "a:0", "a:x", "a:2x", ":2", "a:99999"})
        REQUIRE_THROWS_AS(parse_nodes(wrong), OptionError);
    // No program listens there, and this node refuses the connection.
    REQUIRE(nodes_that_answer({{"localhost", 2}}, 1) == std::vector<NodeSlots>{{"localhost", 2}});
    REQUIRE(nodes_that_answer({{"no-such-node.invalid", 1}}).empty());
}

}  // namespace ddp::test
