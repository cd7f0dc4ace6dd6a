// Local SGD with one parameter, whose numbers are known.
#include <algorithm>

#include "10_nodes/make_communicator.hpp"
#include "11_data_parallel/replica.hpp"
#include "13_async/local_sgd.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

constexpr double learning_rate = 0.25;

// Pulls the parameter of every rank to a number of its own.
float target_of(int rank) {
    return static_cast<float>(1 << rank);
}

std::vector<double> expected(int ranks, int steps, int every) {
    std::vector<double> w(static_cast<std::size_t>(ranks));
    for (int step = 1; step <= steps; step++) {
        double mean = 0;
        for (int r = 0; r < ranks; r++) {
            double& mine = w[static_cast<std::size_t>(r)];
            mine -= learning_rate * (mine - static_cast<double>(target_of(r)));
            mean += mine / ranks;
        }
        if (step % every == 0 || step == steps)
            std::ranges::fill(w, mean);
    }
    return w;
}

using Algorithm = int (*)(Communicator&, const Tensor&, Optimizer&, int, int,
                          const std::function<void(int)>&);

// Returns the parameter of each rank, and as the last number how often the ranks averaged.
std::vector<float> learned(int ranks, int steps, int every, Algorithm algorithm) {
    World world(thread_options(ranks));
    std::vector<float> w(static_cast<std::size_t>(ranks) + 1);
    world.run([&](Rank& rank) {
        auto& device = make_run_scoped<Device>(rank, std::size_t{1} << 20);
        const auto communicator = make_communicator("native", rank, 1 << 16);
        const auto parameter = std::make_shared<Parameter>(
            "w", Tensor(device, {1}, communicator->allocate<float>(1).share()));
        parameter->value.copy_from(std::vector<float>{0});
        PlainSgd optimizer({parameter}, learning_rate);
        rank.barrier();
        const int met =
            algorithm(*communicator, parameter->value, optimizer, steps, every, [&](int) {
                const float value = parameter->value.to_host()[0];
                parameter->gradient_for_writing().copy_from(
                    std::vector<float>{value - target_of(rank.rank())});
            });
        w[static_cast<std::size_t>(rank.rank())] = parameter->value.to_host()[0];
        if (rank.rank() == 0)
            w.back() = static_cast<float>(met);
        rank.barrier();
    });
    return w;
}

// A typical mistake: the ranks average their gradients where they should average their parameters,
// which have drifted apart.
int averages_gradients(Communicator& communicator, const Tensor& values, Optimizer& optimizer,
                       int steps, int every, const std::function<void(int)>& compute) {
    Stream& stream = values.device().stream();
    ArenaBuffer<float> gradient = communicator.allocate<float>(1);
    for (int step = 1; step <= steps; step++) {
        compute(step - 1);
        const Tensor mine = optimizer.parameters()[0]->gradient();
        if (step % every == 0 || step == steps) {
            gradient.copy_from(mine.to_host());
            communicator.all_reduce(gradient.data(), gradient.data(), 1, ReduceOp::average, stream);
            communicator.synchronize(stream);
            Tensor(mine).copy_from(gradient.to_host_now());
        }
        optimizer.step();
    }
    return 0;
}

bool is_right(const std::vector<float>& w, const std::vector<double>& right) {
    for (std::size_t r = 0; r < right.size(); r++)
        if (w[r] != Approx(right[r]).epsilon(1e-6))
            return false;
    return true;
}

}  // namespace

TEST_CASE("local SGD: each rank alone, and the mean of the parameters every few steps") {
    for (int ranks : {1, 2, 3, 4})
        for (const auto& [every, met] : {std::pair{1, 7}, {2, 4}, {3, 3}, {7, 1}, {9, 1}}) {
            const std::vector<float> w = learned(ranks, 7, every, local_sgd);
            CAPTURE(ranks, every);
            REQUIRE(is_right(w, expected(ranks, 7, every)));
            REQUIRE(w.back() == static_cast<float>(met));
        }
}

TEST_CASE("local SGD: averaging gradients instead of parameters is found") {
    for (int ranks : {2, 3, 4}) {
        REQUIRE_FALSE(is_right(learned(ranks, 7, 3, averages_gradients), expected(ranks, 7, 3)));
        // The mistake does not show if the ranks average after every step.
        REQUIRE(is_right(learned(ranks, 7, 1, averages_gradients), expected(ranks, 7, 1)));
    }
}

TEST_CASE("local SGD: an average every 0 steps is refused") {
    World world(thread_options(2));
    REQUIRE(has(failure_of(world,
                           [](Rank& rank) {
                               Device& device = make_run_scoped<Device>(rank);
                               const auto communicator = make_communicator("native", rank, 1 << 16);
                               const Tensor values(device, {1});
                               PlainSgd optimizer({}, 0.1);
                               local_sgd(*communicator, values, optimizer, 1, 0, [](int) {});
                           }),
                "ranks cannot average every 0 steps"));
}

}  // namespace ddp::test
