// Processes of a sharded training are killed: whichever and whenever, the end is the same to the
// bit.
#include <csignal>
#include <iostream>
#include <random>

#include "19_checkpoint_failover/job/scenario.hpp"
#include "tests/chapters/support/jobs.hpp"
#include "tests/chapters/support/pictures.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

constexpr int job_ranks = 4, job_steps = 60;

Words command_of(int ranks, const TemporaryFolder& folder, const Pictures& pictures,
                 const std::string& model = "mlp") {
    return {SHARDED_PROGRAM,
            "--processes=" + std::to_string(ranks),
            "--stage=3",
            "--model=" + model,
            "--folder=" + (folder / "checkpoints").string(),
            "--data=" + pictures.folder(),
            "--every=5",
            "--batch=4",
            "--steps=" + std::to_string(job_steps),
            "--timeout=20"};
}

// Supervises the program with these faults, one in each attempt, which end the attempt's job.
// `left`: the ranks of all attempts but the first.
Scenario train_with(const std::vector<Fault>& planned, const Pictures& pictures,
                    int left = job_ranks, const std::string& model = "mlp") {
    const TemporaryFolder folder;
    Faults faults(planned);
    Supervisor supervisor(
        {.max_restarts = static_cast<int>(planned.size())},
        [&](const std::vector<Attempt>& before) {
            return command_of(before.empty() ? job_ranks : left, folder, pictures, model);
        },
        [&](SupervisedProcess& job, const Attempt& attempt, double now_s) {
            faults.watch(job, attempt, now_s);
        });
    Scenario scenario{"", supervisor.run(), faults.happened()};
    REQUIRE(scenario.final_hash().size() == 16);
    return scenario;
}

}  // namespace

TEST_CASE("sharded failover: killed, four ranks end in the same bits, and three go on") {
    if (!processes_can_run_kernels(job_ranks))
        return;
    const Pictures pictures(400, 20);
    const std::string calm = train_with({}, pictures).final_hash();
    const Scenario killed = train_with({{Fault::Kind::kill, 2, 24}}, pictures);
    REQUIRE(killed.attempts.size() == 2);
    REQUIRE(killed.recoveries().at(0).from_step >= 10);
    REQUIRE(killed.final_hash() == calm);
    const Scenario fewer = train_with({{Fault::Kind::kill, 3, 24}}, pictures, 3);
    REQUIRE(fewer.attempts.size() == 2);
    REQUIRE(fewer.recoveries().at(0).ranks == 3);
    REQUIRE(fewer.recoveries().at(0).from_step >= 10);
    REQUIRE(fewer.attempts.back().last_step() == job_steps);
    REQUIRE(nothing_is_left(SHARDED_PROGRAM));
}

TEST_CASE("sharded failover: told to end, it saves, and the same command ends in the same bits") {
    if (!processes_can_run_kernels(job_ranks))
        return;
    const Pictures pictures(400, 20);
    const TemporaryFolder folder;
    bool is_told = false;
    Supervisor told(
        {}, [&](const auto&) { return command_of(job_ranks, folder, pictures); },
        [&](SupervisedProcess& job, const Attempt& attempt, double) {
            if (!is_told && attempt.last_step() >= 11) {
                kill(job.process(), SIGTERM);
                is_told = true;
            }
        });
    const Attempt attempt = told.run().back();
    REQUIRE(attempt.is_preempted());
    REQUIRE(attempt.status == status_of_preemption);
    REQUIRE(attempt.last_step() < job_steps);
    Supervisor again({}, [&](const auto&) { return command_of(job_ranks, folder, pictures); }, {});
    const Scenario rest{"", again.run(), {}};
    REQUIRE(rest.final_hash() == train_with({}, pictures).final_hash());
    REQUIRE(nothing_is_left(SHARDED_PROGRAM));
}

TEST_CASE("sharded failover: a transformer that is killed ends in the same bits", "[.long]") {
    if (!processes_can_run_kernels(job_ranks))
        return;
    const Pictures pictures(400, 20);
    const auto train = [&](const std::vector<Fault>& faults) {
        return train_with(faults, pictures, job_ranks, "transformer");
    };
    const Scenario killed = train({{Fault::Kind::kill, 1, 24}});
    REQUIRE(killed.attempts.size() == 2);
    REQUIRE(killed.recoveries().at(0).from_step >= 10);
    REQUIRE(killed.final_hash() == train({}).final_hash());
    REQUIRE(nothing_is_left(SHARDED_PROGRAM));
}

// Two kills in each training, at steps and of ranks that are drawn, half of them in a save. (A save
// may be over before the supervisor reads of it: that kill comes later, or never.)
TEST_CASE("sharded failover: the same, ten times at random", "[.weekly]") {
    if (!processes_can_run_kernels(job_ranks))
        return;
    const Pictures pictures(400, 20);
    const std::string calm = train_with({}, pictures).final_hash();
    std::size_t kills = 0;
    for (std::uint32_t seed = 1; kills < 10; seed++) {
        CAPTURE(seed, kills);
        REQUIRE(seed < 20);
        std::mt19937 random(seed);
        const auto draw = [&](int below) {
            return static_cast<int>(random() % static_cast<std::uint32_t>(below));
        };
        std::vector<Fault> faults;
        for (const int from : {1, job_steps / 2})
            faults.push_back({draw(2) == 0 ? Fault::Kind::kill : Fault::Kind::kill_while_saving,
                              draw(job_ranks), from + draw(job_steps / 2 - 6)});
        const Scenario killed = train_with(faults, pictures);
        REQUIRE(killed.attempts.size() == killed.faults.size() + 1);
        REQUIRE(killed.final_hash() == calm);
        kills += killed.faults.size();
    }
    std::cout << kills << " kills: one hash" << std::endl;
    REQUIRE(nothing_is_left(SHARDED_PROGRAM));
}

}  // namespace ddp::test
