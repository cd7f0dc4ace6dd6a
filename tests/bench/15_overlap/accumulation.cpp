#include "tests/bench/15_overlap/lessons.hpp"

#include <algorithm>
#include <optional>

#include "03_network/cross_entropy.hpp"
#include "03_network/layers/small_training.hpp"
#include "03_network/loader.hpp"
#include "03_network/models.hpp"
#include "10_nodes/make_communicator.hpp"
#include "15_overlap/ddp.hpp"
#include "common/report/bench.hpp"

namespace ddp {
namespace {

constexpr double fixed_learning_rate = 0.05;

// Learns from micro-batch `i` of a group of `size`.
void learn(DistributedDataParallel& ddp, Tape& tape, const Batch& batch, NoSyncAround around, int i,
           int size) {
    const bool is_last = i + 1 == size;
    std::optional<DistributedDataParallel::NoSync> no_sync;
    if (!is_last && around == NoSyncAround::forward_and_backward)
        no_sync.emplace(ddp);
    const Variable loss = cross_entropy(ddp.forward(tape.constant(batch.images)), batch.labels);
    if (!is_last && around == NoSyncAround::backward)
        no_sync.emplace(ddp);
    ddp.backward(loss, {}, 1.0f / static_cast<float>(size));
    tape.clear();
}

}  // namespace

Accumulated learn_in_groups(Rank& rank, const LabelledImages& images, NoSyncAround around,
                            const Accumulation& accumulation, std::uint64_t seed) {
    auto& device = make_run_scoped<Device>(rank, std::size_t{8} << 20);
    const auto all = static_cast<int>(images.count());
    const int batch = std::min(accumulation.batch, all);
    auto& loader =
        make_run_scoped<Loader>(rank, device, images, fashion_mnist_normalisation, batch);
    Random random(seed);
    const auto model = make_mlp(device, random, mlp_widths(images, {32}));
    const auto communicator = make_communicator("native", rank, ddp_arena_bytes(*model));
    DistributedDataParallel ddp(*communicator, device, *model);
    Accumulated result;
    ddp.set_bucket_hook(
        [&](Communicator& ranks, Tensor bucket, Stream& stream, const std::string& name) {
            result.all_reduces++;
            average_bucket(ranks, bucket, stream, name);
        });
    Sgd optimizer(model->parameters(), fixed_learning_rate);
    SmallTraining training(device, optimizer);
    Tape tape(device);
    std::vector<int> samples;
    for (int i = 0; i < accumulation.micro_batches * batch; i++)
        samples.push_back((i * rank.world_size() + rank.rank()) % all);
    loader.start_epoch(std::move(samples));
    rank.barrier();
    const Stopwatch watch;
    for (int begin = 0; begin < accumulation.micro_batches; begin += accumulation.group) {
        // The last group may have fewer micro-batches: the mean is over those that it has.
        const int size = std::min(accumulation.group, accumulation.micro_batches - begin);
        training.step([&] {
            for (int i = 0; i < size; i++)
                learn(ddp, tape, *loader.next(), around, i, size);
        });
        result.steps++;
    }
    communicator->synchronize(device.stream());
    result.seconds = watch.seconds();
    for (const auto& parameter : model->parameters())
        for (const float value : parameter->value.to_host())
            result.parameters.push_back(value);
    require_equal_replicas(rank, model->parameters());
    return result;
}

}  // namespace ddp
