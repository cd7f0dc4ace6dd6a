// Kills and stops the ranks of a training, which goes on and ends with the same bits.
#include <atomic>
#include <iostream>

#include "03_network/models.hpp"
#include "05_ranks/world.hpp"
#include "15_overlap/training.hpp"
#include "19_checkpoint_failover/resumable_training.hpp"
#include "19_checkpoint_failover/show/failover_report.hpp"
#include "19_checkpoint_failover/show/torn_files.hpp"
#include "19_checkpoint_failover/state/folders.hpp"
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
int train(const FailoverOptions& options, const CommonOptions& common, char** argv) {
    if (const std::optional<int> status = launch_processes(common, argv))
        return *status;
    World world(common);
    options.plan.order.require(world.job());
    FashionMnist data;
    world.prepare([&] { data = load_data(common); });
    if (data.train.are_numbers)
        throw OptionError("this training mirrors its --data: it needs pictures, and no table.");
    require_batch(options.plan.batch, data.train.count(), world.world_size());
    const CheckpointFolder folder(world, options.folder);
    TrainingPlan plan = options.plan;
    plan.checkpoints.folder = folder.path();
    // A temporary folder ends with this process.
    plan.checkpoints.takes_sigterm = !options.folder.empty();
    plan.seed = common.seed;
    std::atomic<bool> is_done;  // the same on all ranks
    world.run([&](Rank& rank) { is_done = train_resumably(rank, data, plan); });
    return is_done ? 0 : status_of_preemption;
}

JobSettings settings_of(const FailoverOptions& options, const CommonOptions& common,
                        double timeout_s) {
    JobSettings settings;
    // Processes can be killed one by one, but cannot share a GPU.
    const bool are_processes = common.processes || (!common.ranks && kernels_run_on_cpu);
    settings.launcher = options.mpirun || !options.nodes.empty() ? Launcher::mpirun
                        : are_processes                          ? Launcher::processes
                                                                 : Launcher::threads;
    settings.ranks = common.ranks.value_or(common.processes.value_or(4));
    settings.nodes = parse_nodes(options.nodes);
    settings.supervisor.max_restarts = options.max_restarts;
    settings.supervisor.silence_s = 2 * timeout_s;  // the ranks time out first, and name the cause
    settings.supervisor.start_s = std::max(30.0, 2 * timeout_s);
    settings.arguments = job_arguments(options.plan, common, timeout_s);
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
    FailoverOptions options;
    Options parser("checkpoint_failover", "What if a node dies? Checkpoints, and a supervisor.");
    parser.add_int("--epochs", options.plan.epochs, {1, 10'000}, "how often to see each picture");
    parser.add_int("--batch", options.plan.batch, {1, max_mirrored}, "pictures per step and rank");
    parser.add_double("--learning-rate", options.plan.learning_rate, {1e-9, 1e6},
                      "of the first epoch; it falls with every epoch");
    parser.add_choice("--optimizer", options.plan.optimizer, {"sgd", "adam"}, "the rule of a step");
    CheckpointPlan& checkpoints = options.plan.checkpoints;
    parser.add_int("--every", checkpoints.every, {1, 1'000'000}, "steps between two checkpoints");
    parser.with_quick("--every", [&] { checkpoints.every = 10; });
    parser.add_int("--keep", checkpoints.keep, {1, 1000}, "how many checkpoints to keep");
    parser.add_text("--folder", options.folder, "for checkpoints; %h is the node's name");
    parser.add_flag("--train", options.train, "train on from the last checkpoint, unsupervised");
    parser.add_flag("--supervise", options.supervise, "under the supervisor, without our faults");
    parser.add_int("--max-restarts", options.max_restarts, {0, 1'000'000},
                   "for --supervise: how often to start the job again");
    parser.add_flag("--mpirun", options.mpirun, "the supervisor starts the ranks by mpirun");
    parser.add_text("--hosts", options.nodes,
                    "for --supervise: node0,node1:2; those that answer are used");
    options.plan.order.add_to(parser);
    parser.refuse({"--trace", "--link"}, "this chapter shows whole trainings, not a step");
    parser.example("--processes 4", "a training whose ranks are killed and stopped");
    parser.example("--train --folder run1", "again after Ctrl-C: it continues");
    parser.example("--supervise --folder run1", "and kill -9 what you like");
    const CommonOptions common = parser.parse(argc, argv);
    const StartedBy starter = find_starter(common);
    if (options.train || starter != StartedBy::none)
        return train(options, common, argv);
    const double soon = common.quick ? 10 : std::min(common.timeout_s, 4.0);
    if (!options.supervise && options.nodes.empty())
        return show(settings_of(options, common, soon), common);
    if (options.folder.empty())
        throw OptionError("--supervise and --hosts need a --folder for the checkpoints.");
    const JobSettings settings = settings_of(options, common, common.timeout_s);
    const Scenario scenario = supervise(settings, options.folder);
    std::cout << text_of_end(scenario) << "\n";
    return scenario.attempts.back().is_preempted() ? status_of_preemption : 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] { return run(argc, argv); });
}
