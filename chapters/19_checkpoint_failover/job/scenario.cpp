#include "19_checkpoint_failover/job/scenario.hpp"

#include <algorithm>
#include <iostream>

#include "05_ranks/coordinator/watchdog.hpp"
#include "19_checkpoint_failover/state/folders.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

std::vector<std::string> command_of(const JobSettings& settings, int ranks,
                                    const std::string& folder,
                                    const std::vector<NodeSlots>& nodes) {
    std::vector<std::string> arguments = settings.arguments;
    arguments.insert(arguments.end(), {"--folder", folder});
    return job_command(settings.launcher, ranks, arguments, nodes);
}

// Returns the value of the last status line of this kind, or "".
std::string last_value(const std::vector<Attempt>& attempts, const std::string& what) {
    std::string value;
    for (const Attempt& attempt : attempts)
        for (const TimedStatus& each : attempt.status_lines)
            if (each.status.what == what)
                value = each.status.value;
    return value;
}

// Prints what a reader of a supervised job should know at once: its notes, and that checkpoints
// are lost.
class Narrator {
  public:
    // Prints what is new since the last call.
    void tell(const Attempt& attempt) {
        if (attempt.begin_s != begin_s_)
            told_ = 0;
        begin_s_ = attempt.begin_s;
        for (; told_ < attempt.status_lines.size(); told_++)
            tell(attempt.status_lines[told_].status);
    }

  private:
    void tell(const StatusLine& status) {
        if (status.what == "note")
            std::cout << "note: " << status.value << std::endl;
        if (status.what == "saved")
            saved_ = status.step;
        if (status.what == "resumed" && status.rank == 0 && status.step < saved_)
            std::cout << "note: step " << saved_ << " was saved and cannot be found: the training "
                      << "goes on after step " << status.step << "." << std::endl;
    }

    double begin_s_ = -1;     // of the attempt
    std::size_t told_ = 0;    // of its lines
    std::int64_t saved_ = 0;  // the last step that any attempt has saved
};

}  // namespace

std::string Scenario::final_hash() const {
    return last_value(attempts, "done");
}

std::optional<double> Scenario::final_accuracy() const {
    const std::string accuracy = last_value(attempts, "tested");
    return accuracy.empty() ? std::nullopt : std::optional(std::stod(accuracy));
}

double Scenario::seconds_of(const std::string& event) const {
    const std::string seconds = last_value(attempts, event);
    return seconds.empty() ? 0 : std::stod(seconds);
}

std::vector<Recovery> Scenario::recoveries() const {
    std::vector<Recovery> all;
    for (std::size_t i = 0; i < faults.size() && i + 1 < attempts.size(); i++) {
        const Attempt &failed = attempts[i], &next = attempts[i + 1];
        const double started_s = next.time_of("started"), resumed_s = next.time_of("resumed");
        Recovery recovery{faults[i]};
        recovery.notice_s = failed.noticed_s - faults[i].time_s;
        recovery.end_s = failed.end_s - failed.noticed_s;
        recovery.start_s = started_s - failed.end_s;
        recovery.load_s = resumed_s - started_s;
        recovery.redo_s = std::max(0.0, next.time_of_step(faults[i].at_step) - resumed_s);
        recovery.from_step = next.step_at("resumed");
        recovery.ranks = next.ranks();
        all.push_back(recovery);
    }
    return all;
}

std::vector<std::string> job_arguments(const TrainingPlan& plan, const CommonOptions& common,
                                       double timeout_s) {
    if (plan.order.shape)
        throw OptionError("--shape needs --train: a supervised job may go on with fewer ranks.");
    std::vector<std::string> arguments{"--train",
                                       "--epochs=" + std::to_string(plan.epochs),
                                       "--batch=" + std::to_string(plan.batch),
                                       "--learning-rate=" + format_fixed(plan.learning_rate, 9),
                                       "--optimizer=" + plan.optimizer,
                                       "--every=" + std::to_string(plan.checkpoints.every),
                                       "--keep=" + std::to_string(plan.checkpoints.keep),
                                       "--seed=" + std::to_string(common.seed),
                                       "--levels=" + std::to_string(plan.order.levels),
                                       "--timeout=" + format_fixed(timeout_s, 3)};
    if (common.quick)
        arguments.push_back("--quick");
    if (!common.data.empty())
        arguments.push_back("--data=" + common.data.string());
    return arguments;
}

Scenario run_scenario(const std::string& name, const JobSettings& settings,
                      const std::string& folder, const std::vector<Fault>& planned,
                      const std::function<int(int)>& ranks_of) {
    Faults faults(planned);
    SupervisorOptions options = settings.supervisor;
    options.max_restarts = static_cast<int>(planned.size());
    Supervisor supervisor(
        options,
        [&](const std::vector<Attempt>& before) {
            const std::vector<Fault> happened = faults.happened();
            if (before.size() > happened.size())
                throw std::runtime_error("the job has failed without a fault of ours: " +
                                         before.back().cause);
            return command_of(settings, ranks_of(static_cast<int>(before.size())), folder, {});
        },
        [&](SupervisedProcess& job, const Attempt& attempt, double now_s) {
            faults.watch(job, attempt, now_s);
        });
    Scenario scenario{name, supervisor.run(), faults.happened()};
    if (scenario.faults.size() != planned.size())
        throw std::runtime_error("the training was over before the " +
                                 planned[scenario.faults.size()].text() +
                                 " was due: give it more --epochs");
    return scenario;
}

std::vector<Scenario> run_scenarios(const JobSettings& settings, bool quick) {
    using Kind = Fault::Kind;
    const int ranks = settings.ranks;
    const auto always = [&](int) { return ranks; };
    std::vector<Scenario> scenarios;
    const auto add = [&](const std::string& name, const std::vector<Fault>& faults,
                         const std::function<int(int)>& ranks_of, const JobSettings& job) {
        const TemporaryFolder folder;
        scenarios.push_back(run_scenario(name, job, folder.path().string(), faults, ranks_of));
    };
    add("undisturbed", {}, always, settings);
    const int steps = scenarios[0].attempts[0].last_step();
    const auto fault = [&](Kind kind, int rank, double share) {
        return Fault{kind, rank % ranks, static_cast<int>(share * steps)};
    };
    if (quick) {
        add("killed", {fault(Kind::kill, ranks - 1, 0.6)}, always, settings);
        return scenarios;
    }
    add("killed",
        {fault(Kind::kill, ranks - 1, 0.2), fault(Kind::kill_while_saving, 0, 0.45),
         fault(Kind::stop, 1, 0.75)},
        always, settings);
    // A node dies with half of the ranks. The second attempt does without it; in the third one it
    // is back.
    const int lost = std::max(1, ranks / 2);
    Fault node = fault(Kind::kill, ranks - lost, 0.3);
    node.count = lost;
    add(
        "fewer ranks", {node, fault(Kind::kill, 0, 0.7)},
        [&](int attempt) { return attempt == 1 ? std::max(1, ranks - lost) : ranks; }, settings);
    JobSettings without_checkpoints = settings;
    without_checkpoints.arguments.push_back("--every=" + std::to_string(steps + 1));
    add("from zero", {fault(Kind::kill, ranks - 1, 0.75)}, always, without_checkpoints);
    return scenarios;
}

Scenario supervise(const JobSettings& settings, const std::string& folder) {
    Narrator narrator;
    const auto next_command = [&](const std::vector<Attempt>& before) {
        if (!before.empty()) {
            narrator.tell(before.back());
            std::cout << "attempt " << before.size() << " ended after step "
                      << before.back().last_step() << ": " << before.back().cause << std::endl;
        }
        const std::vector<NodeSlots> alive = nodes_that_answer(settings.nodes);
        int ranks = settings.nodes.empty() ? settings.ranks : 0;
        std::string names;
        for (const NodeSlots& node : alive) {
            ranks += node.slots;
            names += " " + node.name;
        }
        if (ranks == 0)
            return std::vector<std::string>();
        std::cout << "attempt " << before.size() + 1 << ": " << format_count(ranks, "rank")
                  << (alive.empty() ? "" : " on" + names) << std::endl;
        return command_of(settings, ranks, folder, alive);
    };
    const Sigterm sigterm;  // to this process: the job is told
    const auto watch = [&](SupervisedProcess& job, const Attempt& attempt, double) {
        narrator.tell(attempt);
        if (sigterm.has_come())
            job.ask_to_end();
    };
    const std::vector<Attempt> attempts =
        Supervisor(settings.supervisor, next_command, watch).run();
    narrator.tell(attempts.back());
    return {"supervised", attempts, {}};
}

}  // namespace ddp
