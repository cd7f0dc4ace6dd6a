#include "22_sharded/show/stages.hpp"

#include <functional>

#include "03_network/cross_entropy.hpp"
#include "03_network/loader.hpp"
#include "03_network/models.hpp"
#include "03_network/optimizers.hpp"
#include "10_nodes/make_communicator.hpp"
#include "15_overlap/ddp.hpp"
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

// The rest of a rank's training, which all stages have in common.
struct Training {
    Training(Rank& rank, const LabelledImages& images, const StagePlan& plan)
        : rank(rank),
          plan(plan),
          device(make_run_scoped<Device>(rank, rank_memory(rank))),
          loader(make_run_scoped<Loader>(rank, device, images, fashion_mnist_normalisation,
                                         plan.batch, LastBatch::drop)),
          random(plan.seed),
          model(make_mlp(device, random, stage_widths)),
          communicator(make_communicator(
              "native", rank,
              ddp_arena_bytes(*model) +
                  ShardedDataParallel::arena_bytes(blocks_of(*model), rank.world_size()),
              {.order = plan.order})),
          tape(device) {}

    // Takes the plan's steps, and returns the seconds of one.
    double run(const std::function<void(const Batch& batch)>& step) {
        rank.barrier();
        const Stopwatch clock;
        for (int made = 0, epoch = 1; made < plan.steps; epoch++) {
            loader.start_epoch(shard(shuffled(loader.samples(), plan.seed, epoch), rank.rank(),
                                     rank.world_size()));
            for (std::optional<Batch> batch;
                 made < plan.steps && (batch = loader.next()).has_value(); made++) {
                rank.check();
                step(*batch);
                tape.clear();
            }
        }
        communicator->synchronize(device.stream());
        return clock.seconds() / plan.steps;
    }

    Rank& rank;
    const StagePlan& plan;
    Device& device;
    Loader& loader;
    Random random;
    const std::unique_ptr<Sequential> model;
    const std::unique_ptr<Communicator> communicator;
    Tape tape;
};

// Stage 0 is DistributedDataParallel as it is. It only gets the plan of its buckets: the units.
StageResult train_replicated(Training& training) {
    DistributedDataParallel ddp(*training.communicator, training.device, *training.model);
    const Units units = units_of(blocks_of(*training.model), training.rank.world_size());
    ddp.set_state({.plan = encode_plan(units.plan), .ready_order = {}});
    const auto optimizer =
        make_stage_optimizer(training.plan.optimizer, training.model->parameters());
    StageResult result;
    result.seconds_per_step = training.run([&](const Batch& batch) {
        const Variable scores = ddp.forward(training.tape.constant(batch.images));
        ddp.backward(cross_entropy(scores, batch.labels));
        optimizer->step();
        optimizer->zero_gradients();
    });
    result.hash = text_of_hash(hash_of(training.model->parameters()));
    for (const auto& parameter : training.model->parameters())
        result.parameters += parameter->value.bytes();
    result.gradients = units.plan.memory_bytes();
    result.moments = bytes_of_moments(*optimizer);
    const auto ranks = static_cast<std::size_t>(training.rank.world_size());
    result.received_per_step = 2 * result.gradients * (ranks - 1) / ranks;
    return result;
}

StageResult train_sharded(Training& training, Mesh mesh) {
    ShardedDataParallel sharded(std::move(mesh), training.device, blocks_of(*training.model),
                                training.plan.stage);
    const auto optimizer = make_stage_optimizer(training.plan.optimizer, sharded.chunks());
    StageResult result;
    result.seconds_per_step = training.run([&](const Batch& batch) {
        const Variable scores = sharded.forward(training.tape.constant(batch.images));
        sharded.backward(cross_entropy(scores, batch.labels));
        optimizer->step();
        optimizer->zero_gradients();
        sharded.after_step();
    });
    result.received_per_step =
        sharded.received_bytes() / static_cast<std::size_t>(training.plan.steps);
    result.hash = hash_of_sharded(training.rank, training.device, sharded);
    result.parameters = sharded.held().parameters;
    result.gradients = sharded.held().gradients;
    result.moments = bytes_of_moments(*optimizer);
    return result;
}

}  // namespace

std::unique_ptr<Optimizer> make_stage_optimizer(const std::string& name,
                                                const Parameters& parameters) {
    if (name == "sgd")
        return std::make_unique<Sgd>(parameters, 0.05);
    return std::make_unique<Adam>(parameters);
}

std::string hash_of_sharded(Rank& rank, Device& device, ShardedDataParallel& sharded) {
    Parameters whole;
    for (const std::vector<float>& values : sharded.whole_parameters())
        whole.push_back(std::make_shared<Parameter>(
            "", Tensor(device, {static_cast<int>(values.size())}, values)));
    require_equal_replicas(rank, whole);
    return text_of_hash(hash_of(whole));
}

StageResult train_at_stage(Rank& rank, const LabelledImages& images, const StagePlan& plan) {
    Training training(rank, images, plan);
    const StageResult result = plan.stage == 0 ? train_replicated(training)
                                               : train_sharded(training, *training.communicator);
    rank.barrier();  // no rank leaves while another one may still read its memory
    return result;
}

StageResult train_hybrid(Rank& rank, const LabelledImages& images, const StagePlan& plan) {
    Training training(rank, images, plan);
    const std::size_t bytes =
        ShardedDataParallel::arena_bytes(blocks_of(*training.model), rank.world_size());
    HybridMesh hybrid = make_hybrid_mesh(rank, plan.order.shape, bytes, bytes / sizeof(float));
    const StageResult result = train_sharded(training, std::move(hybrid.mesh));
    rank.barrier();
    return result;
}

}  // namespace ddp
