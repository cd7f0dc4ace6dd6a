#include "tests/chapters/19_checkpoint_failover/supervised.hpp"

#include <csignal>

#include "19_checkpoint_failover/state/checkpoints.hpp"
#include "common/data/file.hpp"
#include "tests/chapters/support/jobs.hpp"

namespace ddp::test {
namespace {

// Returns how many checkpoints of the folder are damaged.
int count_torn(const std::string& path) {
    DiskFolder folder(path);
    int torn = 0;
    for (const int step : Checkpoints(folder, 1).steps())
        try {
            const std::string name = Checkpoints::file_name(step);
            read_checkpoint(step, folder.read(name), name);
        } catch (const DataError&) {
            torn++;
        }
    return torn;
}

}  // namespace

std::vector<std::string> Training::command(const std::string& folder,
                                           const std::string& data) const {
    const Words options{"--train",
                        "--folder=" + folder,
                        "--data=" + data,
                        "--epochs=" + std::to_string(epochs),
                        "--batch=8",
                        "--every=5",
                        "--learning-rate=0.02",
                        "--timeout=" + std::to_string(timeout_s)};
    const Words program{CHECKPOINT_FAILOVER_PROGRAM};
    if (by_mpirun)
        return Words{"mpirun", "--oversubscribe", "--bind-to", "none"} + ranks + program + options;
    return program + ranks + options;
}

Outcome supervise(const Training& training, const Pictures& pictures,
                  const SupervisorOptions& options, const Supervisor::Watch& watch) {
    const TemporaryFolder folder;
    const std::string path = (folder / "checkpoints").string();
    Outcome outcome;
    Supervisor supervisor(
        options,
        [&](const std::vector<Attempt>& before) {
            if (!before.empty())
                outcome.torn += count_torn(path);
            return training.command(path, pictures.folder());
        },
        watch);
    outcome.attempts = supervisor.run();
    outcome.torn += count_torn(path);
    for (const TimedStatus& each : outcome.attempts.back().status_lines)
        if (each.status.what == "done")
            outcome.hash = each.status.value;
    return outcome;
}

void RandomKills::plan(const Attempt& attempt) {
    planned_for_s_ = attempt.begin_s;
    is_over_ = false;
    std::uniform_real_distribution<double> moment(0, longest_s_);
    due_s_ = attempt.begin_s + moment(random_);
    victim_ = static_cast<int>(random_() % 5) - 1;
    while_saving_ = random_() % 3 == 0;
}

void RandomKills::watch(SupervisedProcess& job, const Attempt& attempt, double now_s) {
    if (attempt.begin_s != planned_for_s_)
        plan(attempt);
    if (left_ == 0 || is_over_)
        return;
    if (while_saving_
            ? attempt.status_lines.empty() || attempt.status_lines.back().status.what != "saving"
            : now_s < due_s_)
        return;
    const pid_t rank = victim_ >= 0 ? attempt.process_of(victim_) : 0;
    kill(rank != 0 ? rank : job.process(), SIGKILL);  // before the ranks have met: the launcher
    is_over_ = true;
    left_--;
    done_++;
}

}  // namespace ddp::test
