#include "tests/bench/22_sharded/timed_stages.hpp"

#include "03_network/models.hpp"
#include "03_network/optimizers.hpp"
#include "10_nodes/make_communicator.hpp"
#include "15_overlap/support/timed_training.hpp"
#include "22_sharded/bill.hpp"
#include "22_sharded/sharded.hpp"
#include "common/report/bench.hpp"
#include "common/report/stats.hpp"

namespace ddp {
namespace {

constexpr int steps_of_round = 3;

// Makes steps of a sharded training on one batch of made-up samples.
class TimedShards {
  public:
    TimedShards(Communicator& communicator, Device& device, Sequential& model, Random& random,
                const Sharding& sharding, int batch)
        : communicator_(communicator),
          device_(device),
          sharded_(communicator, device, blocks_of(model), sharding.stage,
                   {.prefetch = sharding.prefetches}),
          optimizer_(sharded_.chunks(), 0.05),
          tape_(device),
          inputs_(device, {batch, timed_width}),
          labels_(device, {batch}) {
        std::vector<float> values(inputs_.size());
        for (float& value : values)
            value = random.uniform(0, 1);
        inputs_.copy_from(values);
        labels_.copy_from(std::vector<int>(static_cast<std::size_t>(batch), 3));
    }

    // Makes some steps. Returns the seconds of one, from the moment when all ranks begin until all
    // have ended.
    double run(int steps) {
        Rank& rank = communicator_.rank();
        rank.barrier();
        const Stopwatch watch;
        for (int step = 0; step < steps; step++) {
            sharded_.backward(cross_entropy(sharded_.forward(tape_.constant(inputs_)), labels_));
            optimizer_.step();
            optimizer_.zero_gradients();
            sharded_.after_step();
            tape_.clear();
        }
        communicator_.synchronize(device_.stream());
        rank.barrier();
        return rank.max_over_ranks(watch.seconds()) / steps;
    }

  private:
    Communicator& communicator_;
    Device& device_;
    ShardedDataParallel sharded_;
    Sgd optimizer_;
    Tape tape_;
    Tensor inputs_;
    Labels labels_;
};

}  // namespace

const std::vector<Sharding>& shardings() {
    static const std::vector<Sharding> all{
        {"0: DDP", 0}, {"1", 1}, {"2", 2}, {"3", 3}, {"3, no prefetch", 3, false}};
    return all;
}

StageTimes time_stages(Rank& rank, int batch, int rounds, std::uint64_t seed) {
    rank.select_device();
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
    Random random(seed);
    std::vector<std::unique_ptr<Sequential>> models;
    for (std::size_t i = 0; i < shardings().size(); i++)
        models.push_back(make_mlp(device, random, std::vector<int>(timed_layers + 1, timed_width)));
    std::size_t arena_bytes = 0;
    for (const Sharding& sharding : shardings())
        arena_bytes += arena_bytes_of(blocks_of(*models[0]), sharding.stage, rank.world_size());
    const auto communicator = make_communicator("native", rank, arena_bytes);
    // DDP's buckets are about a layer, as the units are.
    TimedTraining replicated(
        *communicator, device, *models[0], random,
        {{timed_width}, timed_width, batch, false, {.bucket_cap_bytes = 1 << 20}});
    std::vector<std::unique_ptr<TimedShards>> sharded;
    std::vector<StepParts> parts;
    std::vector<Measurement> variants{[&] {
        parts.push_back(replicated.run(steps_of_round));
        return rank.max_over_ranks(parts.back().whole) / steps_of_round;
    }};
    for (std::size_t i = 1; i < shardings().size(); i++) {
        sharded.push_back(std::make_unique<TimedShards>(*communicator, device, *models[i], random,
                                                        shardings()[i], batch));
        variants.push_back([each = sharded.back().get()] { return each->run(steps_of_round); });
    }
    StageTimes times{.seconds = interleave(variants, 1, rounds)};
    parts.erase(parts.begin());  // the warm-up
    // A rank that waits for the other one's cores computes no faster than the two together.
    const StepParts middle = medians(parts);
    const double share = middle.backward / middle.compute;
    times.backward_s = share * median(times.seconds[0]);
    times.forward_s = (1 - share) * median(times.seconds[0]);
    times.gradient_bytes = replicated.gradient_bytes();
    rank.barrier();
    return times;
}

std::vector<std::vector<double>> time_beside(Rank& rank, int batch, int rounds, std::uint64_t seed,
                                             const std::function<double(int steps)>& other) {
    constexpr int steps = 10;  // PyTorch's rounds begin and end with messages of their own
    rank.select_device();
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
    Random random(seed);
    const std::vector<int> widths(timed_layers + 1, timed_width);
    const auto first = make_mlp(device, random, widths), third = make_mlp(device, random, widths);
    const auto arena_bytes = [&](const auto& model, int stage) {
        return arena_bytes_of(blocks_of(*model), stage, rank.world_size());
    };
    const auto communicator =
        make_communicator("native", rank, arena_bytes(first, 1) + arena_bytes(third, 3));
    TimedShards stage_1(*communicator, device, *first, random, {"1", 1}, batch);
    TimedShards stage_3(*communicator, device, *third, random, {"3", 3}, batch);
    // While the other program runs, the other ranks wait in max_over_ranks and take no core.
    const std::vector<Measurement> variants{
        [&] { return stage_1.run(steps); }, [&] { return stage_3.run(steps); },
        [&] { return rank.max_over_ranks(rank.rank() == 0 ? other(steps) : 0) / steps; }};
    const auto times = interleave(variants, 1, rounds);
    rank.barrier();
    return times;
}

// All layers are alike, and so are the blocks. (The optimizer's time is in forward's.) A stage
// computes as long as its own step without a link takes: beside DDP's it clears slots, and a CPU
// copies what is gathered. Without prefetch no stage computes more.
double predicted_step_s(std::size_t which, const StageTimes& times, int ranks,
                        const LinkSpeed& link) {
    const Sharding& sharding = shardings()[which];
    const std::size_t same = sharding.prefetches ? which : which - 1;
    const double layer_s = median(times.seconds[same]) / timed_layers;
    const double share = times.backward_s / (times.forward_s + times.backward_s);
    simulator::ShardedStep step;
    step.blocks.assign(timed_layers, {(1 - share) * layer_s, share * layer_s,
                                      times.gradient_bytes / timed_layers});
    const simulator::Seconds half_s = [&](double bytes) {
        return bytes * (ranks - 1) / ranks / link.bytes_per_second + (ranks - 1) * link.latency_s;
    };
    return simulator::sharded_step_s(step, sharding.stage, ranks, {half_s, half_s},
                                     sharding.prefetches);
}

}  // namespace ddp
