#include "19_checkpoint_failover/show/failover_report.hpp"
#include "19_checkpoint_failover/state/folders.hpp"
#include "22_sharded/show/tables.hpp"

namespace ddp {

void show_failover(const StagePlan& plan, const CommonOptions& common) {
    constexpr int ranks = 4;
    JobSettings job{
        .launcher = kernels_run_on_cpu ? Launcher::processes : Launcher::threads,
        .ranks = ranks,
        .nodes = {},
        .arguments = {"--stage=" + std::to_string(plan.stage), "--every=5", "--model=" + plan.model,
                      "--steps=" + std::to_string(plan.steps),
                      "--batch=" + std::to_string(plan.batch), "--optimizer=" + plan.optimizer,
                      "--seed=" + std::to_string(common.seed), "--timeout=10"},
        .supervisor = {}};
    if (!common.data.empty())
        job.arguments.push_back("--data=" + common.data.string());
    std::vector<Scenario> scenarios;
    const auto add = [&](const std::string& name, const std::vector<Fault>& faults, int left) {
        const TemporaryFolder folder;
        scenarios.push_back(run_scenario(name, job, folder.path().string(), faults,
                                         [&](int attempt) { return attempt == 0 ? ranks : left; }));
    };
    using Kind = Fault::Kind;
    add("undisturbed", {}, ranks);
    add("killed",
        {{Kind::kill, 2, plan.steps * 2 / 5}, {Kind::kill_while_saving, 1, plan.steps / 2}}, ranks);
    add("three are left", {{Kind::kill, 3, plan.steps / 2}}, ranks - 1);
    show_recoveries(scenarios);
    show_endings(scenarios);
}

}  // namespace ddp
