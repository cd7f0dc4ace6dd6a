// The same small network with the same weights and batches: what tiny.cpp's DistributedDataParallel
// learns is what the book's learns.
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <span>

#include "03_network/cross_entropy.hpp"
#include "03_network/models.hpp"
#include "03_network/optimizers.hpp"
#include "10_nodes/make_communicator.hpp"
#include "15_overlap/ddp.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace tiny {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wreturn-type"  // only main may end without a return
#define main tiny_main
#include "00_tiny/tiny.cpp"
#undef main
#pragma GCC diagnostic pop
}  // namespace tiny

namespace ddp::test {
namespace {

constexpr int steps = 10, batch_size = 8;
constexpr float learning_rate = 0.1f;
const std::vector<int> widths = {784, 128, 10};

using Losses = std::vector<std::vector<double>>;  // [rank][step]

tiny::Samples samples_of(const tiny::Samples& data, int step, int rank, int world_size) {
    const std::vector<int> own = tiny::distributed_sampler(data.count(), 1, rank, world_size);
    return gather(data,
                  std::span(own).subspan(static_cast<std::size_t>(step * batch_size), batch_size));
}

Losses losses_of_tiny(const tiny::Samples& data, int world_size) {
    Losses losses(static_cast<std::size_t>(world_size));
    std::vector<tiny::Channel> ring(losses.size());
    std::vector<std::jthread> ranks;
    for (int r = 0; r < world_size; r++)
        ranks.emplace_back([&, r] {
            auto& left = ring[static_cast<std::size_t>(r)];
            auto& right = ring[static_cast<std::size_t>((r + 1) % world_size)];
            tiny::DistributedDataParallel replica({r, world_size, left, right}, widths, 1 << 10);
            for (int step = 0; step < steps; step++)
                losses[static_cast<std::size_t>(r)].push_back(
                    replica.step(samples_of(data, step, r, world_size), learning_rate));
        });
    ranks.clear();
    return losses;
}

// Gives the book's network the parameters of tiny's rank 0: a row holds weights, and then a bias.
void copy_parameters(const Module& model) {
    tiny::Network first(widths, 0);
    const Parameters parameters = model.parameters();
    for (std::size_t l = 0; l < first.layers.size(); l++) {
        std::vector<float> weight, bias;
        const auto inputs = static_cast<std::size_t>(first.layers[l].inputs);
        for (std::size_t i = 0; i < first.layers[l].parameters.size(); i++)
            (i % (inputs + 1) < inputs ? weight : bias).push_back(first.layers[l].parameters[i]);
        parameters.at(2 * l)->value.copy_from(weight);
        parameters.at(2 * l + 1)->value.copy_from(bias);
    }
}

Losses losses_of_the_book(const tiny::Samples& data, int world_size) {
    Losses losses(static_cast<std::size_t>(world_size));
    World world(thread_options(world_size));
    const std::string failure = failure_of(world, [&](Rank& rank) {
        auto& device = make_run_scoped<Device>(rank, 16 << 20);
        Random random(static_cast<std::uint64_t>(rank.rank()));
        const auto model = make_mlp(device, random, widths);
        if (rank.rank() == 0)
            copy_parameters(*model);
        const auto communicator = make_communicator("native", rank, ddp_arena_bytes(*model));
        DistributedDataParallel replica(*communicator, device, *model,
                                        {.bucket_cap_bytes = 1 << 10});
        Sgd optimizer(model->parameters(), learning_rate, 0.0);
        for (int step = 0; step < steps; step++) {
            const tiny::Samples batch = samples_of(data, step, rank.rank(), world_size);
            const std::vector<int> labels(batch.labels.begin(), batch.labels.end());
            Tape tape(device);
            const Tensor images(device, {batch_size, 1, 28, 28}, batch.x);
            const Variable loss = cross_entropy(replica.forward(tape.constant(images)),
                                                Labels(device, {batch_size}, labels));
            replica.backward(loss);
            optimizer.step();
            optimizer.zero_gradients();
            losses[static_cast<std::size_t>(rank.rank())].push_back(loss.value().to_host()[0]);
        }
        communicator->synchronize(device.stream());
    });
    REQUIRE(failure.empty());
    return losses;
}

}  // namespace

TEST_CASE("ten losses of tiny.cpp are those of the book's DistributedDataParallel") {
    const tiny::Samples data = tiny::draw_shapes(400);
    for (const int world_size : {1, 3, 4}) {
        const Losses mine = losses_of_tiny(data, world_size),
                     book = losses_of_the_book(data, world_size);
        for (std::size_t r = 0; r < mine.size(); r++) {
            REQUIRE(mine[r].size() == steps);
            REQUIRE(book[r].size() == steps);
            for (std::size_t step = 0; step < steps; step++) {
                INFO("rank " << r << " of " << world_size << ", step " << step);
                CHECK(mine[r][step] == Approx(book[r][step]).margin(1e-4).epsilon(0));
            }
            CHECK(std::abs(mine[r].back() - mine[r].front()) > 0.1);
        }
    }
}

}  // namespace ddp::test
