// Kills and stops the ranks of a training, which goes on and ends with the same bits.
#include <atomic>
#include <iostream>

#include "03_network/models.hpp"
#include "05_ranks/world.hpp"
#include "15_overlap/training.hpp"
#include "19_checkpoint_failover/resumable_training.hpp"
#include "19_checkpoint_failover/show/scenario.hpp"
#include "19_checkpoint_failover/show/torn_files.hpp"
#include "19_checkpoint_failover/state/checkpoint_folder.hpp"
#include "19_checkpoint_failover/state/mirror.hpp"
#include "common/gpu/gpu.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

struct FailoverOptions {
    TrainingPlan plan;
    std::string folder, nodes;
    int max_restarts = 3;
    bool train = false, supervise = false, mpirun = false;
};

// The job itself, started by the supervisor or by hand.
int train(const FailoverOptions& mine, const CommonOptions& common, char** argv) {
    if (const std::optional<int> status = launch_processes(common, argv))
        return *status;
    World world(common);
    mine.plan.order.require(world.job());
    FashionMnist data;
    world.prepare([&] { data = load_data(common); });
    if (data.train.are_numbers)
        throw OptionError("this training mirrors its --data: it needs pictures, and no table.");
    require_batch(mine.plan.batch, data.train.count(), world.world_size());
    const CheckpointFolder folder(world, mine.folder);
    TrainingPlan plan = mine.plan;
    plan.checkpoints.folder = folder.path();
    plan.checkpoints.takes_sigterm =
        !mine.folder.empty();  // a temporary one ends with this process
    plan.seed = common.seed;
    std::atomic<bool> is_done;  // the same on all ranks
    world.run([&](Rank& rank) { is_done = train_resumably(rank, data, plan); });
    return is_done ? 0 : status_of_preemption;
}

JobSettings settings_of(const FailoverOptions& mine, const CommonOptions& common,
                        double timeout_s) {
    JobSettings settings;
    // Processes can be killed one by one, but cannot share a GPU.
    const bool are_processes = common.processes || (!common.ranks && kernels_run_on_cpu);
    settings.launcher = mine.mpirun || !mine.nodes.empty() ? Launcher::mpirun
                        : are_processes                    ? Launcher::processes
                                                           : Launcher::threads;
    settings.ranks = common.ranks.value_or(common.processes.value_or(4));
    settings.nodes = parse_nodes(mine.nodes);
    settings.supervisor.max_restarts = mine.max_restarts;
    settings.supervisor.silence_s = 2 * timeout_s;  // the ranks time out first, and name the cause
    settings.supervisor.start_s = std::max(30.0, 2 * timeout_s);
    settings.arguments = job_arguments(mine.plan, common, timeout_s);
    return settings;
}

int show(const JobSettings& settings, const CommonOptions& common) {
    require_writable(common);
    show_torn_files(settings.ranks);
    const std::vector<Scenario> scenarios = run_scenarios(settings, common.quick);
    show_recoveries(scenarios);
    write_scenarios(common.csv, scenarios);
    show_endings(scenarios);
    return 0;
}

int run(int argc, char** argv) {
    FailoverOptions mine;
    Options options("checkpoint_failover", "What if a node dies? Checkpoints, and a supervisor.");
    options.add_int("--epochs", mine.plan.epochs, {1, 10'000}, "how often to see each picture");
    options.add_int("--batch", mine.plan.batch, {1, most_mirrored}, "pictures per step and rank");
    options.add_double("--learning-rate", mine.plan.learning_rate, {1e-9, 1e6},
                       "of the first epoch; it falls with every epoch");
    options.add_choice("--optimizer", mine.plan.optimizer, {"sgd", "adam"}, "the rule of a step");
    CheckpointPlan& checkpoints = mine.plan.checkpoints;
    options.add_int("--every", checkpoints.every, {1, 1'000'000}, "steps between two checkpoints");
    options.with_quick("--every", [&] { checkpoints.every = 10; });
    options.add_int("--keep", checkpoints.keep, {1, 1000}, "how many checkpoints to keep");
    options.add_text("--folder", mine.folder, "for the checkpoints; %h is the node's name");
    options.add_flag("--train", mine.train, "train from the last checkpoint, without a supervisor");
    options.add_flag("--supervise", mine.supervise, "under the supervisor, without our faults");
    options.add_int("--max-restarts", mine.max_restarts, {0, 1'000'000},
                    "for --supervise: how often to start the job again");
    options.add_flag("--mpirun", mine.mpirun, "the supervisor starts the ranks by mpirun");
    options.add_text("--hosts", mine.nodes,
                     "for --supervise: node0,node1:2; those that answer are used");
    mine.plan.order.add_to(options);
    options.refuse({"--trace", "--link"}, "this chapter shows whole trainings, not a step");
    options.example("--processes 4", "a training whose ranks are killed and stopped");
    options.example("--train --folder run1", "again after Ctrl-C: it continues");
    options.example("--supervise --folder run1", "and kill -9 what you like");
    const CommonOptions common = options.parse(argc, argv);
    const StartedBy starter = find_starter(common);
    if (mine.train || starter != StartedBy::nobody)
        return train(mine, common, argv);
    if (!mine.supervise && mine.nodes.empty())
        return show(settings_of(mine, common, common.quick ? 10 : std::min(common.timeout_s, 4.0)),
                    common);
    if (mine.folder.empty())
        throw OptionError("--supervise and --hosts need a --folder for the checkpoints.");
    const Scenario scenario = supervise(settings_of(mine, common, common.timeout_s), mine.folder);
    std::cout << text_of_end(scenario) << "\n";
    return scenario.attempts.back().is_preempted() ? status_of_preemption : 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] { return run(argc, argv); });
}
