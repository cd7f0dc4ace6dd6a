// Prefetch hides what it can, over a link on which an all-reduce takes as long as backward. The
// layers' computing is a kernel that sleeps: it takes time, but no core from what the collectives
// do on a CPU.
#include <algorithm>

#include "03_network/cross_entropy.hpp"
#include "03_network/linear.hpp"
#include "03_network/optimizers.hpp"
#include "21_cluster/simulated_sharded.hpp"
#include "22_sharded/bill.hpp"
#include "22_sharded/sharded.hpp"
#include "common/gpu/clock.hpp"
#include "common/gpu/launch.hpp"
#include "common/report/bench.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

constexpr int layers = 8, width = 512, steps = 2;
constexpr double bytes = 4.0 * width * (width + 1);  // of a layer
// A half of an all-reduce of one layer takes as long as its forward, and half as long as its
// backward.
constexpr double half_s = 0.01, forward_s = half_s, backward_s = 2 * half_s;

__global__ void sleep_for(std::uint64_t ns) {
    const std::uint64_t end_ns = device_clock_ns() + ns;
    for (std::uint64_t now = device_clock_ns(); now < end_ns; now = device_clock_ns())
        __nanosleep(end_ns - now < 1'000'000 ? static_cast<unsigned int>(end_ns - now) : 1'000'000);
}
void sleep(Stream& stream, double seconds) {
    launch(stream, LaunchShape(1, 1), sleep_for, static_cast<std::uint64_t>(seconds * 1e9));
}

// A linear layer whose forward and backward take these times.
class SlowLayer : public Module {
  public:
    SlowLayer(const std::string& name, Device& device, Random& random)
        : Module(name), linear_(name, device, width, width, random) {}

    Variable forward(Variable input) override {
        const Variable y = linear_.forward(input);
        sleep(y.value().device().stream(), forward_s);
        return y.tape->record(
            "sleep", y.value(), {y}, [](const Tensor& gradient, Tape::InputGradients& inputs) {
                Stream& stream = gradient.device().stream();
                sleep(stream, backward_s);
                DDP_CHECK(cudaMemcpyAsync(inputs.target(0).tensor.data(), gradient.data(),
                                          gradient.bytes(), cudaMemcpyDeviceToDevice, stream));
            });
    }
    Parameters parameters() const override { return linear_.parameters(); }

  private:
    Linear linear_;
};

// A training of such layers at stage 3.
class SlowTraining {
  public:
    SlowTraining(Communicator& communicator, Device& device, Sequential& model, bool prefetches)
        : communicator_(communicator),
          device_(device),
          sharded_(communicator, device, blocks_of(model), 3, {.prefetch = prefetches}),
          optimizer_(sharded_.chunks(), 0.01),
          tape_(device),
          input_(device, {1, width}, std::vector<float>(width, 0.1f)),
          label_(device, {1}) {
        label_.copy_from(std::vector<int>{3});
        step_s();
    }

    // Returns the seconds of a step.
    double step_s() {
        communicator_.rank().barrier();
        const Stopwatch watch;
        for (int step = 0; step < steps; step++) {
            sharded_.backward(cross_entropy(sharded_.forward(tape_.constant(input_)), label_));
            optimizer_.step();
            optimizer_.zero_gradients();
            sharded_.after_step();
            tape_.clear();
        }
        communicator_.synchronize(device_.stream());
        return communicator_.rank().max_over_ranks(watch.seconds()) / steps;
    }

  private:
    Communicator& communicator_;
    Device& device_;
    ShardedDataParallel sharded_;
    Sgd optimizer_;
    Tape tape_;
    Tensor input_;
    Labels label_;
};

// Returns the time of a step by the simulator.
double simulated_s(bool prefetches) {
    simulator::ShardedStep step;
    step.blocks.assign(layers, {forward_s, backward_s, bytes});
    const auto half = [](double) { return half_s; };
    return simulator::sharded_step_s(step, 3, 2, {half, half}, prefetches);
}

}  // namespace

TEST_CASE("prefetch hides most of what can be hidden over a link as slow as backward") {
    const double with_s = simulated_s(true), without_s = simulated_s(false);
    // The first gather and the last reduction stand alone; without prefetch all gathers do, and in
    // backward the reductions that are enqueued before them.
    REQUIRE(with_s == Approx(layers * (forward_s + backward_s) + 2 * half_s));
    REQUIRE(without_s == Approx(with_s + (layers - 1 + 2 * (layers - 2)) * half_s));
    CommonOptions options = thread_options(2);
    options.link = LinkSpeed{bytes / 2 / half_s, 0};
    World world(options);
    double measured_without_s = 0, hidden = 0;
    world.run([&](Rank& rank) {
        rank.select_device();
        auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
        Random random(1);
        std::vector<std::unique_ptr<Sequential>> models;
        std::size_t arena_bytes = 0;
        for (int i = 0; i < 2; i++) {
            models.push_back(std::make_unique<Sequential>("slow"));
            for (int layer = 0; layer < layers; layer++)
                models.back()->add<SlowLayer>("layer" + std::to_string(layer), device, random);
            arena_bytes += arena_bytes_of(blocks_of(*models.back()), 3, 2);
        }
        const auto communicator = make_communicator("native", rank, arena_bytes);
        SlowTraining with(*communicator, device, *models[0], true);
        SlowTraining without(*communicator, device, *models[1], false);
        double slow_s = without.step_s();  // the shortest: other work makes steps longer
        for (int i = 0; i < 2; i++)
            slow_s = std::min(slow_s, without.step_s());
        if (rank.rank() == 0)
            measured_without_s = slow_s;
        try_until_good(rank, [&] {
            const double share = (without_s - with.step_s()) / (without_s - with_s);
            if (rank.rank() == 0)
                hidden = share;
            return share > 0.5;
        });
        rank.barrier();
    });
    REQUIRE(measured_without_s > 0.98 * without_s);  // no machine is faster than the link
    REQUIRE(hidden > 0.5);  // a busy machine has hidden 0.61, and a quiet one hides more than 0.85
}

}  // namespace ddp::test
