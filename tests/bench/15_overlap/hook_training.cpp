#include "tests/bench/15_overlap/hook_training.hpp"

#include <algorithm>
#include <cmath>

#include "03_network/cross_entropy.hpp"
#include "03_network/layers/small_training.hpp"
#include "03_network/loader.hpp"
#include "03_network/models.hpp"
#include "10_nodes/make_communicator.hpp"
#include "11_data_parallel/training_result.hpp"
#include "15_overlap/ddp.hpp"
#include "15_overlap/hooks_by_name.hpp"
#include "15_overlap/power_sgd.hpp"

namespace ddp {

namespace {

constexpr int batch_size = 32;

// A hook that also computes the exact average, and the distance between the two.
class Watched {
  public:
    Watched(Communicator& communicator, const FlatBuffers& gradients, BucketHook hook)
        : gradients_(gradients),
          hook_(std::move(hook)),
          exact_(communicator.allocate<float>(gradients.plan().memory_bytes() / sizeof(float))),
          sum_(exact_.size()),
          exact_sum_(exact_.size()) {}

    void reduce(Communicator& communicator, Tensor bucket, Stream& stream,
                const std::string& name) {
        float* exact = exact_.data() + (bucket.data() - gradients_.bucket(0).data());
        DDP_CHECK(cudaMemcpyAsync(exact, bucket.data(), bucket.bytes(), cudaMemcpyDeviceToDevice,
                                  stream));
        communicator.all_reduce(exact, exact, bucket.size(), ReduceOp::average, stream,
                                name + ", exact");
        hook_(communicator, bucket, stream, name);
    }

    // Compares the two after a step that the device has finished.
    void compare() {
        const std::vector<float> exact = exact_.to_host_now();
        std::vector<float> found;
        for (std::size_t i = 0; i < gradients_.plan().buckets.size(); i++)
            for (const float value : gradients_.bucket(i).to_host())
                found.push_back(value);
        double error = 0, whole = 0, sum_error = 0, sum_whole = 0;
        for (std::size_t i = 0; i < exact.size(); i++) {
            sum_[i] += found[i];
            exact_sum_[i] += exact[i];
            error += std::pow(found[i] - exact[i], 2);
            whole += std::pow(exact[i], 2);
            sum_error += std::pow(sum_[i] - exact_sum_[i], 2);
            sum_whole += std::pow(exact_sum_[i], 2);
        }
        step_error = std::sqrt(error / whole);
        all_error = std::sqrt(sum_error / sum_whole);
    }

    double step_error = 0, all_error = 0;

  private:
    const FlatBuffers& gradients_;
    const BucketHook hook_;
    ArenaBuffer<float> exact_;  // laid out as the buckets
    std::vector<double> sum_, exact_sum_;
};

// Returns the bytes that a rank passes to the all-reduces of the last step. Until PowerSGD starts,
// it sends what the average does.
std::size_t bytes_of(const std::string& name, const FlatBuffers& gradients,
                     const HookTraining& training) {
    const bool is_power_sgd = name.starts_with("power_sgd");
    if (name == "average" || (is_power_sgd && training.steps <= training.start_step))
        return gradients.plan().memory_bytes();
    if (!is_power_sgd)
        return gradients.plan().memory_bytes() / 2;
    return power_sgd_bytes(gradients.parameters(),
                           {.matrix_rank = name == "power_sgd" ? 1 : larger_matrix_rank});
}

}  // namespace

HookResult learn_with_hook(Rank& rank, const LabelledImages& images, const std::string& name,
                           const HookTraining& training, std::uint64_t seed) {
    constexpr int counted = 10;
    auto& device = make_run_scoped<Device>(rank, std::size_t{32} << 20);
    // Where a rank has fewer pictures than a batch takes, its batch is all that it has.
    const int of_a_rank = static_cast<int>(images.count()) / rank.world_size();
    auto& loader = make_run_scoped<Loader>(rank, device, images, fashion_mnist_normalisation,
                                           std::min(batch_size, of_a_rank), LastBatch::drop);
    Random random(seed);
    const auto model = make_mlp(device, random, mlp_widths(images, {256, 256}));
    const auto communicator =
        make_communicator("native", rank, 2 * ddp_arena_bytes(*model) + hook_arena_bytes(*model));
    DistributedDataParallel ddp(*communicator, device, *model, {.bucket_cap_bytes = 1 << 19});
    auto& watched = make_run_scoped<Watched>(
        rank, *communicator, ddp.gradients(),
        make_hook(name, rank, *communicator, ddp.gradients(), training.start_step));
    ddp.set_bucket_hook(
        [&](Communicator& ranks, Tensor bucket, Stream& stream, const std::string& what) {
            watched.reduce(ranks, bucket, stream, what);
        });
    Sgd optimizer(model->parameters(), 0.05);
    SmallTraining small(device, optimizer);
    // Backward, and a look at the gradients before the step.
    const auto backward = [&](Variable loss) {
        ddp.backward(loss);
        communicator->synchronize(device.stream());
        watched.compare();
    };
    std::vector<double> losses;
    rank.barrier();
    for (int epoch = 1, step = 0; step < training.steps; epoch++) {
        loader.start_epoch(
            shard(shuffled(loader.samples(), seed, epoch), rank.rank(), rank.world_size()));
        while (const std::optional<Batch> batch =
                   step < training.steps ? loader.next() : std::nullopt) {
            const auto loss_of = [&](Tape& tape) {
                return cross_entropy(ddp.forward(tape.constant(batch->images)), batch->labels);
            };
            losses.push_back(small.step(loss_of, backward).to_host()[0]);
            step++;
        }
    }
    require_equal_replicas(rank, model->parameters());
    HookResult result{bytes_of(name, ddp.gradients(), training), watched.step_error,
                      watched.all_error, 0};
    const std::vector<double> means = mean_of_ranks(rank, losses);
    const std::size_t last = std::min<std::size_t>(counted, means.size());
    for (std::size_t i = means.size() - last; i < means.size(); i++)
        result.loss += means[i] / static_cast<double>(last);
    return result;
}

}  // namespace ddp
