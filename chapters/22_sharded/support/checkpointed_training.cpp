#include "22_sharded/support/stages.hpp"

#include <unistd.h>

#include <atomic>
#include <iostream>

#include "10_nodes/make_communicator.hpp"
#include "19_checkpoint_failover/job/status_line.hpp"
#include "22_sharded/bill.hpp"
#include "22_sharded/sharded_checkpoint.hpp"

namespace ddp {
namespace {

void report(Rank& rank, const std::string& what, int step, const std::string& value = "") {
    send_to_supervisor({rank.rank(), what, step, value});
    if (rank.rank() == 0 && !has_supervisor() && what != "step")
        std::cout << what << " at step " << step << (value.empty() ? "" : ": " + value)
                  << std::endl;
}

// Returns false if it was told to end.
bool train(Rank& rank, const LabelledImages& images, const StagePlan& plan,
           const CheckpointPlan& checkpoints) {
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
    auto& host = make_run_scoped<Device>(rank, 0, pinned_memory);
    const auto model = make_stage_model(plan.model, host, plan.batch, plan.seed);
    model->prepare(rank, device, images);
    const auto communicator = make_communicator(
        "native", rank,
        arena_bytes_of(model->blocks(), plan.stage, rank.world_size()) + preemption_arena_bytes());
    ShardedDataParallel sharded(*communicator, device, model->blocks(), plan.stage);
    const auto optimizer = make_stage_optimizer(plan.optimizer, sharded.chunks());
    ShardedCheckpoints run(*communicator, device, model->blocks(), sharded, *optimizer, checkpoints,
                           {{"batch", std::to_string(plan.batch)},
                            {"optimizer", plan.optimizer},
                            {"seed", std::to_string(plan.seed)},
                            {"model", plan.model},
                            {"number of pictures", std::to_string(images.count())}},
                           [&](const std::string& what, int step) {
                               send_to_supervisor({rank.rank(), what, step, ""});
                           });
    const std::optional<SavedSet> from = run.resume();
    TrainingState& state = run.state();
    report(rank, "resumed", state.step, std::to_string(state.samples));
    if (from && rank.rank() == 0 && !has_supervisor())
        std::cout << "from the checkpoint of " << from->ranks << " ranks" << std::endl;
    Tape tape(device);
    const auto take_step = [&] {
        rank.check();
        sharded.backward(sharded.forward([&] { return model->loss(tape, state); }));
        run.wait_for_copy();
        optimizer->step();
        optimizer->zero_gradients();
        sharded.after_step();
        tape.clear();
        count_step(state, plan, rank);
        if (rank.rank() == 0)
            report(rank, "step", state.step, std::to_string(state.samples) + " 0");
        run.save_if_due();
    };
    bool is_done = true;
    try {
        while (state.step < plan.steps)
            take_step();
    } catch (const ToldToEnd&) {
        is_done = false;
    }
    run.finish();
    if (is_done)
        report(rank, "done", state.step, hash_of_sharded(rank, host, sharded));
    else
        send_to_supervisor({rank.rank(), "preempted", state.step, ""});
    if (!is_done && rank.rank() == 0 && !has_supervisor())
        std::cout << text_of_preemption(state.step) << std::endl;
    rank.barrier();
    return is_done;
}

}  // namespace

int train_from_checkpoints(World& world, const LabelledImages& images, const StagePlan& plan,
                           const CheckpointPlan& checkpoints) {
    std::atomic<bool> is_done;  // the same on all ranks
    world.run([&](Rank& rank) {
        // The supervisor learns which processes belong to the job.
        send_to_supervisor(
            {rank.rank(), "started", 0, rank.node() + " " + std::to_string(getpid())});
        rank.select_device();
        try {
            is_done = train(rank, images, plan, checkpoints);
        } catch (const std::exception& error) {
            send_to_supervisor({rank.rank(), "failed", 0, error.what()});
            throw;
        }
    });
    return is_done ? 0 : status_of_preemption;
}

}  // namespace ddp
