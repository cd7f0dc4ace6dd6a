#include "22_sharded/support/stages.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <stdexcept>

#include "03_network/optimizers.hpp"
#include "06_messages/peers.hpp"
#include "10_nodes/make_communicator.hpp"
#include "15_overlap/ddp.hpp"
#include "16_recipe/clip_gradients.hpp"
#include "22_sharded/bill.hpp"
#include "22_sharded/sharded.hpp"
#include "common/report/bench.hpp"

namespace ddp {
namespace {

std::size_t bytes_of_moments(Optimizer& optimizer) {
    std::size_t bytes = 0;
    for (const auto& [name, tensor] : optimizer.state().tensors)
        bytes += tensor.bytes();
    return bytes;
}

// Returns what a rank reserves on its device beside the arena: what the bill has there, and a
// quarter more for the gaps between blocks of memory.
std::size_t reserved_bytes(StageModel& model, const StagePlan& plan, int ranks) {
    const Bill bill = bill_of(model.blocks(), plan.stage, ranks, moments_of(plan.optimizer));
    const std::size_t kept = bill.moments + (plan.stage == 0 ? bill.parameters : 0);
    return (kept + model.activations() * 5 / 4 + (std::size_t{1} << 20)) / 512 * 512;
}

// A rank's training as far as all stages have it in common. The model is made on the host.
struct Training {
    Training(Rank& rank, const LabelledImages& images, const StagePlan& plan)
        : rank(rank),
          plan(plan),
          host(make_run_scoped<Device>(rank, 0, pinned_memory)),
          model(make_stage_model(plan.model, host, plan.batch, plan.seed)),
          device(make_run_scoped<Device>(rank, reserved_bytes(*model, plan, rank.world_size()))),
          options{.prefetch = plan.prefetch, .bfloat16 = plan.bfloat16 && plan.stage == 3},
          arena_bytes(arena_bytes_of(model->blocks(), plan.stage, rank.world_size(), options)),
          tape(device) {
        model->prepare(rank, device, images);
    }

    // Makes a communicator of all ranks, with the memory that the stage takes.
    std::unique_ptr<Communicator> communicator() {
        if (plan.link)
            return make_native_communicator(rank, arena_bytes, {.link = plan.link});
        return make_communicator("native", rank, arena_bytes, {.order = plan.order});
    }

    // Takes the plan's steps, which end with the communicator's work, and notes what they took.
    void run(StageResult& result, Communicator& communicator,
             const std::function<Tensor(TrainingState& state)>& step) {
        std::vector<Tensor> losses;
        rank.barrier();
        const Stopwatch clock;
        for (TrainingState state; state.step < plan.steps;) {
            rank.check();
            losses.push_back(step(state));
            tape.clear();
            count_step(state, plan, rank);
        }
        communicator.synchronize(device.stream());
        result.seconds_per_step = clock.seconds() / plan.steps;
        result.first_loss = losses.front().to_host()[0];
        result.last_loss = losses.back().to_host()[0];
        result.at_most = device.memory().peak_bytes + arena_bytes + Peers::own_bytes;
    }

    Rank& rank;
    const StagePlan& plan;
    Device& host;
    const std::unique_ptr<StageModel> model;
    Device& device;
    const ShardOptions options;
    const std::size_t arena_bytes;
    Tape tape;
};

// Stage 0 is DistributedDataParallel as it is. It only gets the plan of its buckets: the units.
StageResult train_replicated(Training& training, Communicator& communicator) {
    StageResult result;
    const Parameters parameters = training.model->module().parameters();
    for (const auto& parameter : parameters) {  // from the host
        parameter->value =
            Tensor(training.device, parameter->value.shape(), parameter->value.to_host());
        result.parameters += parameter->value.bytes();
    }
    DistributedDataParallel ddp(communicator, training.device, training.model->module());
    const Units units = units_of(training.model->blocks(), training.rank.world_size());
    ddp.set_state({.plan = encode_plan(units.plan), .ready_order = {}});
    const auto optimizer = make_stage_optimizer(training.plan.optimizer, parameters);
    training.run(result, communicator, [&](TrainingState& state) {
        const Variable loss =
            ddp.forward([&] { return training.model->loss(training.tape, state); });
        ddp.backward(loss);
        if (training.plan.clip)
            clip_grad_norm(parameters, *training.plan.clip);
        optimizer->step();
        optimizer->zero_gradients();
        return loss.value();
    });
    result.hash = text_of_hash(hash_of(parameters));
    result.gradients = units.plan.memory_bytes();
    result.moments = bytes_of_moments(*optimizer);
    const auto ranks = static_cast<std::size_t>(training.rank.world_size());
    result.received_per_step = 2 * result.gradients * (ranks - 1) / ranks;
    return result;
}

StageResult train_sharded(Training& training, Communicator& communicator, Mesh mesh) {
    ShardedDataParallel sharded(std::move(mesh), training.device, training.model->blocks(),
                                training.plan.stage, training.options);
    const auto optimizer = make_stage_optimizer(training.plan.optimizer, sharded.chunks());
    StageResult result;
    StreamTrack compute("compute", training.device.stream());
    StreamTrack communication("communication", sharded.communication_stream());
    if (training.plan.is_watched)
        sharded.set_tracks(&compute, &communication);
    training.run(result, communicator, [&](TrainingState& state) {
        if (training.plan.is_watched)
            training.rank.barrier();  // the ranks begin together
        const Variable loss =
            sharded.forward([&] { return training.model->loss(training.tape, state); });
        sharded.backward(loss);
        if (training.plan.clip)
            sharded.clip_grad_norm(*training.plan.clip);
        optimizer->step();
        optimizer->zero_gradients();
        sharded.after_step();
        if (training.plan.is_watched) {
            result.timelines.push_back(compute.read(training.rank.rank()));
            std::ranges::move(communication.read(training.rank.rank()),
                              std::back_inserter(result.timelines.back()));
        }
        return loss.value();
    });
    result.received_per_step =
        sharded.received_bytes() / static_cast<std::size_t>(training.plan.steps);
    result.hash = hash_of_sharded(training.rank, training.host, sharded);
    result.parameters = sharded.held().parameters;
    result.gradients = sharded.held().gradients;
    result.moments = bytes_of_moments(*optimizer);
    return result;
}

}  // namespace

void count_step(TrainingState& state, const StagePlan& plan, const Rank& rank) {
    const int samples = plan.batch * rank.world_size();
    state.step++;
    state.taken += samples;
    state.samples += samples;
}

std::string name_of_stage(int stage) {
    return stage == 0 ? "0: DDP" : std::to_string(stage);
}

std::size_t moments_of(const std::string& optimizer) {
    return optimizer == "adam" ? 2 : 1;
}

std::unique_ptr<Optimizer> make_stage_optimizer(const std::string& name,
                                                const Parameters& parameters) {
    if (name == "sgd")
        return std::make_unique<Sgd>(parameters, 0.05);
    return std::make_unique<Adam>(parameters);
}

std::string hash_of_sharded(Rank& rank, Device& host, ShardedDataParallel& sharded) {
    Parameters whole;  // on the host: the device may have no room for it
    for (const std::vector<float>& values : sharded.whole_parameters())
        whole.push_back(std::make_shared<Parameter>(
            "", Tensor(host, {static_cast<int>(values.size())}, values)));
    require_equal_replicas(rank, whole);
    return text_of_hash(hash_of(whole));
}

StageResult train_at_stage(Rank& rank, const LabelledImages& images, const StagePlan& plan) {
    StageResult result;
    rank.run_part([&] {
        Training training(rank, images, plan);
        const auto communicator = training.communicator();
        result = plan.stage == 0 ? train_replicated(training, *communicator)
                                 : train_sharded(training, *communicator, *communicator);
        rank.barrier();  // no rank leaves while another one may still read its memory
    });
    return result;
}

StageResult train_hybrid(Rank& rank, const LabelledImages& images, const StagePlan& plan) {
    StageResult result;
    rank.run_part([&] {
        Training training(rank, images, plan);
        HybridMesh hybrid =
            make_hybrid_mesh(rank, plan.order.shape, training.model->blocks(), training.options);
        result = train_sharded(training, *hybrid.node, std::move(hybrid.mesh));
        rank.barrier();
    });
    return result;
}

std::string text_of_hashes(const std::vector<std::string>& hashes, const StagePlan& plan) {
    if (hashes.size() == 1)
        return "";
    // DDP adds up the norm of all gradients in another order; stage 3 may compute with other
    // parameters.
    const bool is_like_ddp = hashes[0] == hashes[1];
    const std::string last = plan.bfloat16 ? "2" : "3";
    const std::set stages(hashes.begin() + 1, hashes.end() - (plan.bfloat16 ? 1 : 0));
    if (stages.size() > 1 || (!plan.clip && !is_like_ddp))
        throw std::runtime_error("the stages end in different bits: a sum has another order");
    std::string text = "Stages " + std::string(is_like_ddp ? "0" : "1") + " to " + last;
    if (is_like_ddp && !plan.bfloat16)
        text = "All stages";
    text += " end in the same bits.\n";
    if (plan.clip)
        text +=
            "Clipping is an exception: DDP adds up the norm in another order, and may end in "
            "other bits.\n";
    if (plan.bfloat16)
        text +=
            "Gathering in bfloat16 is an exception: stage 3 computes with rounded parameters, "
            "and ends in other bits.\n";
    return text;
}

}  // namespace ddp
