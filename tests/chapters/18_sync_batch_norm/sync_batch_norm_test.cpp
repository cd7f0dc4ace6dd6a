// SyncBatchNorm is BatchNorm2d on the union, for any counts, and the equivalence check notices
// mistakes.
#include "18_sync_batch_norm/sync_batch_norm.hpp"
#include "10_nodes/make_communicator.hpp"

#include <optional>

#include "11_data_parallel/replica.hpp"
#include "tests/chapters/18_sync_batch_norm/mutants.hpp"
#include "tests/chapters/support/replicas.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

std::vector<Differences> compare(World& world, const MakeNorm& make,
                                 const std::vector<std::vector<int>>& all_counts) {
    std::vector<Differences> found(all_counts.size());
    world.run([&](Rank& rank) {
        auto& device = make_run_scoped<Device>(rank, test_memory);
        const auto communicator = make_communicator("native", rank, 1 << 20);
        for (std::size_t i = 0; i < all_counts.size(); i++) {
            const Differences each =
                compare_with_union(device, *communicator, make, all_counts[i], 3 + i);
            if (rank.rank() == 0)
                found[i] = each;
        }
    });
    return found;
}

}  // namespace

TEST_CASE("sync_batch_norm: one to four ranks are BatchNorm2d on the union, for all counts") {
    for (const int ranks : {1, 2, 3, 4}) {
        World world(thread_options(ranks));
        std::vector<std::vector<int>> all = picture_counts(ranks);
        all.emplace_back(static_cast<std::size_t>(ranks), 0);  // only the first has any
        all.back()[0] = 3;
        all.emplace_back(static_cast<std::size_t>(ranks), 0);  // only the last has any
        all.back().back() = 2;
        all.emplace_back(static_cast<std::size_t>(ranks), 1);  // much on one
        all.back()[0] = 40;
        const std::vector<Differences> found = compare(world, make_sync_batch_norm, all);
        for (std::size_t i = 0; i < found.size(); i++) {
            CAPTURE(ranks, i, found[i].output, found[i].running_mean, found[i].running_var,
                    found[i].input_gradient, found[i].parameter_gradients);
            REQUIRE(found[i].largest() <= (ranks == 1 ? 0 : 1e-5));
        }
    }
}

TEST_CASE("sync_batch_norm: plain BatchNorm2d is not, and every mistake has its cause named") {
    const std::pair<Mistake, std::string> mistakes[] = {
        {Mistake::none, ""},
        {Mistake::mean_of_means, "the ranks' means do not weigh by their counts"},
        {Mistake::biased_variance, "the running variance is divided by the count, not by one less"},
        {Mistake::local_count, "the gradient of the input is not that of the union"},
        {Mistake::local_sums, "the gradient of the input is not that of the union"},
        {Mistake::empty_is_no_number, "a rank without a picture spoils the statistics of all"},
    };
    for (const int ranks : {2, 3}) {
        World world(thread_options(ranks));
        for (const auto& [mistake, cause] : mistakes) {
            CAPTURE(ranks, cause);
            REQUIRE(cause_of(compare(world, make_mistaken(mistake), picture_counts(ranks))) ==
                    cause);
        }
        const auto plain = [](std::unique_ptr<BatchNorm2d> norm, Communicator&) { return norm; };
        REQUIRE(compare(world, plain, {picture_counts(ranks)[0]})[0].output > 0.1);
    }
}

TEST_CASE("sync_batch_norm: a rank may have one value a channel, and so may the union") {
    World world(thread_options(2));
    std::vector<float> outputs(2), averages(2), after_one(2);
    world.run([&](Rank& rank) {
        auto& device = make_run_scoped<Device>(rank, test_memory);
        const auto communicator = make_communicator("native", rank, 1 << 20);
        const auto place = static_cast<std::size_t>(rank.rank());
        SyncBatchNorm norm(std::make_unique<BatchNorm2d>("norm", device, 1), *communicator);
        Tape tape(device);
        const float value = rank.rank() == 0 ? 1.0f : 5.0f;
        const Tensor x(device, {1, 1, 1, 1}, std::vector<float>{value});
        outputs[place] = norm.forward(tape.constant(x)).value().to_host()[0];
        averages[place] = norm.buffers()[1].value.to_host()[0];
        const Tensor none(device, {0, 1, 1, 1});
        norm.forward(tape.constant(rank.rank() == 0 ? x : none));
        after_one[place] = norm.buffers()[1].value.to_host()[0];
    });
    // Mean 3, variance 4, and 8 without bias.
    REQUIRE(outputs[0] == Approx(-1).margin(1e-5));
    REQUIRE(outputs[1] == Approx(1).margin(1e-5));
    REQUIRE(averages[0] == Approx(0.9 + 0.8));
    REQUIRE(averages[0] == averages[1]);
    REQUIRE(after_one == averages);
}

TEST_CASE("sync_batch_norm: in evaluation a rank is alone") {
    World world(thread_options(3, 1));
    REQUIRE(failure_of(world, [&](Rank& rank) {
                auto& device = make_run_scoped<Device>(rank, test_memory);
                const auto communicator = make_communicator("native", rank, 1 << 20);
                SyncBatchNorm norm(std::make_unique<BatchNorm2d>("norm", device, 2), *communicator);
                norm.set_training(false);
                if (rank.rank() != 1)
                    return;  // without a collective
                Tape tape(device);
                const auto x = std::make_shared<Parameter>(
                    "x", Tensor(device, {1, 2, 1, 1}, std::vector<float>{3, -4}));
                const Variable y = norm.forward(tape.parameter(x));
                communicator->synchronize(device.stream());
                if (y.value().to_host()[1] != Approx(-4).epsilon(1e-4))
                    throw std::runtime_error("the running averages do not normalise");
                if (norm.traffic().collectives != 0 || norm.traffic().bytes != 0)
                    throw std::runtime_error("it has sent something");
            }) == "");
}

TEST_CASE("sync_batch_norm: two collectives a step, one less if dx is not needed") {
    World world(thread_options(2));
    std::vector<Traffic> with(2), without(2);
    world.run([&](Rank& rank) {
        auto& device = make_run_scoped<Device>(rank, test_memory);
        const auto communicator = make_communicator("native", rank, 1 << 20);
        const auto place = static_cast<std::size_t>(rank.rank());
        for (const bool wants_dx : {true, false}) {
            SyncBatchNorm norm(std::make_unique<BatchNorm2d>("norm", device, 3), *communicator);
            Tape tape(device);
            Tensor x(device, {1, 3, 1, 1});
            fill(x, 1.0f);
            const Variable input =
                wants_dx ? tape.parameter(std::make_shared<Parameter>("x", x)) : tape.constant(x);
            const Variable y = norm.forward(input);
            Tensor one(device, {1});
            fill(one, 1.0f);
            tape.backward(
                tape.record("sum", one, {y}, [](const Tensor&, Tape::InputGradients& inputs) {
                    Tensor dy = inputs.target(0).tensor;
                    fill(dy, 1.0f);
                }));
            communicator->synchronize(device.stream());
            (wants_dx ? with : without)[place] = norm.traffic();
        }
    });
    REQUIRE(with[0].collectives == 2);
    REQUIRE(with[1].bytes == (7 + 6) * sizeof(float));
    REQUIRE(without[0].collectives == 1);
    REQUIRE(without[1].bytes == 7 * sizeof(float));
}

TEST_CASE("sync_batch_norm: later steps need no more memory than the first") {
    World world(thread_options(2));
    REQUIRE(failure_of(world, [&](Rank& rank) {
                auto& device = make_run_scoped<Device>(rank, test_memory);
                const auto communicator = make_communicator("native", rank, 1 << 20);
                std::optional<std::size_t> most;
                const std::size_t before = device.memory().live_bytes;
                for (int i = 0; i < 3; i++) {
                    compare_with_union(device, *communicator, make_sync_batch_norm, {3, 3}, 1);
                    const Device::Memory& memory = device.memory();
                    if (memory.live_bytes != before)
                        throw std::runtime_error("something was not handed back");
                    if (memory.peak_bytes > most.value_or(memory.peak_bytes) ||
                        memory.allocations != 1)
                        throw std::runtime_error("more memory than before");
                    most = memory.peak_bytes;
                }
            }) == "");
}

TEST_CASE("sync_batch_norm: a wrong shape is named") {
    World world(thread_options(2));
    REQUIRE(has(failure_of(world,
                           [&](Rank& rank) {
                               auto& device = make_run_scoped<Device>(rank, test_memory);
                               const auto communicator = make_communicator("native", rank, 1 << 20);
                               SyncBatchNorm norm(std::make_unique<BatchNorm2d>("norm", device, 4),
                                                  *communicator);
                               Tape tape(device);
                               norm.forward(tape.constant(Tensor(device, {2, 3, 1, 1})));
                           }),
                "norm takes [batch, 4, height, width], not [2, 3, 1, 1]"));
}

}  // namespace ddp::test
