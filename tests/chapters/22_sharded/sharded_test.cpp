// Every stage ends in DDP's bits, at sizes that no number of ranks divides, and keeps what the bill
// says.
#include "22_sharded/sharded.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <optional>
#include <thread>

#include "03_network/cross_entropy.hpp"
#include "03_network/models.hpp"
#include "03_network/optimizers.hpp"
#include "09_all_reduce/all_reduce.hpp"
#include "15_overlap/ddp.hpp"
#include "16_recipe/clip_gradients.hpp"
#include "common/report/bench.hpp"
#include "tests/chapters/support/replicas.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Values = std::vector<std::vector<float>>;

const std::vector<int> widths = {64, 37, 29, 23, 10};

struct Outcome {
    Values parameters;  // the learned ones
    Values frozen;
    std::vector<float> norms;  // of the gradients, one a step, if they are clipped
    Values last_gradients;     // of this rank's chunks, clipped
    ShardedDataParallel::Held held;
    std::size_t received = 0;
};

std::unique_ptr<Optimizer> make_optimizer(bool is_adam, const Parameters& parameters) {
    if (is_adam)
        return std::make_unique<Adam>(parameters, 0.01);
    return std::make_unique<Sgd>(parameters, 0.05, 0.9, 0.01);
}

// Four steps on this rank's samples. Ranks begin with different parameters.
Outcome train(Rank& rank, int stage, bool is_adam, std::optional<double> max_norm,
              const std::vector<std::string>& frozen) {
    constexpr int steps = 4;
    rank.select_device();
    auto& device = make_run_scoped<Device>(rank, test_memory);
    Random random(7 + static_cast<std::uint64_t>(rank.rank()));
    const auto model = make_mlp(device, random, widths);
    for (const auto& parameter : model->parameters())
        parameter->is_frozen = std::ranges::find(frozen, parameter->name) != frozen.end();
    const auto communicator = make_native_communicator(rank, 4 << 20);
    Tape tape(device);
    const auto run = [&](const auto& step) {
        std::vector<Batch> batches;  // made before: a copy to the device would wait for it
        for (int i = 0; i < steps; i++) {
            const int first = (i * rank.world_size() + rank.rank()) * 3;
            batches.push_back(batch_of(device, {first, first + 1, first + 2}));
        }
        rank.barrier();
        for (const Batch& batch : batches) {
            step(batch);
            tape.clear();
        }
        communicator->synchronize(device.stream());
    };
    Outcome outcome;
    std::vector<Tensor> norms;
    if (stage == 0) {
        DistributedDataParallel ddp(*communicator, device, *model);
        ddp.set_state({encode_plan(units_of(blocks_of(*model), rank.world_size()).plan), {}});
        const auto optimizer = make_optimizer(is_adam, model->parameters());
        run([&](const Batch& batch) {
            ddp.backward(cross_entropy(ddp.forward(tape.constant(batch.images)), batch.labels));
            if (max_norm)
                norms.push_back(clip_grad_norm(model->parameters(), *max_norm));
            optimizer->step();
            optimizer->zero_gradients();
        });
        for (const auto& parameter : model->parameters())
            if (!parameter->is_frozen)
                outcome.parameters.push_back(parameter->value.to_host());
    } else {
        ShardedDataParallel sharded(*communicator, device, blocks_of(*model), stage);
        const auto optimizer = make_optimizer(is_adam, sharded.chunks());
        run([&](const Batch& batch) {
            sharded.backward(
                cross_entropy(sharded.forward(tape.constant(batch.images)), batch.labels));
            if (max_norm)
                norms.push_back(sharded.clip_grad_norm(*max_norm));
            optimizer->step();
            if (norms.size() == steps)
                for (const auto& chunk : sharded.chunks())
                    outcome.last_gradients.push_back(chunk->gradient().to_host());
            optimizer->zero_gradients();
            sharded.after_step();
        });
        outcome.received = sharded.received_bytes() / steps;
        outcome.held = sharded.held();
        outcome.parameters = sharded.whole_parameters();
    }
    for (const auto& parameter : model->parameters())
        if (parameter->is_frozen)
            outcome.frozen.push_back(parameter->value.to_host());
    for (const Tensor& norm : norms)
        outcome.norms.push_back(norm.to_host()[0]);
    rank.barrier();
    return outcome;
}

std::vector<Outcome> train_all(int ranks, int stage, bool is_adam,
                               std::optional<double> max_norm = {},
                               const std::vector<std::string>& frozen = {}) {
    World world(thread_options(ranks));
    std::vector<Outcome> outcomes(static_cast<std::size_t>(ranks));
    world.run([&](Rank& rank) {
        outcomes[static_cast<std::size_t>(rank.rank())] =
            train(rank, stage, is_adam, max_norm, frozen);
    });
    return outcomes;
}

// The bytes of a unit's chunk, by the widths alone.
std::size_t chunk_bytes(std::size_t layer, std::size_t ranks) {
    const auto rounded = [](std::size_t elements) { return (elements + 15) / 16 * 16; };
    const auto in = static_cast<std::size_t>(widths[layer]);
    const auto out = static_cast<std::size_t>(widths[layer + 1]);
    const std::size_t size = rounded(in * out) + rounded(out);
    return ((size + ranks - 1) / ranks + 31) / 32 * 32 * sizeof(float);
}

}  // namespace

TEST_CASE("sharded: every stage ends in DDP's bits on every rank", "[as_one]") {
    for (const bool is_adam : {true, false})
        for (const int ranks : is_adam ? std::vector{1, 2, 3, 4} : std::vector{3}) {
            const Values replicated = train_all(ranks, 0, is_adam)[0].parameters;
            for (const int stage : {1, 2, 3}) {
                CAPTURE(is_adam, ranks, stage);
                for (const Outcome& outcome : train_all(ranks, stage, is_adam))
                    REQUIRE(outcome.parameters == replicated);
            }
        }
}

// Sgd, since Adam's step hardly depends on the length of a gradient.
TEST_CASE("sharded: the gradients are clipped by the norm of all ranks' chunks") {
    constexpr int ranks = 3;
    constexpr double max_norm = 0.125;
    const Outcome replicated = train_all(ranks, 0, false, max_norm)[0];
    for (const float norm : replicated.norms)
        REQUIRE(norm > max_norm);  // so every step is clipped
    for (const int stage : {1, 2, 3}) {
        CAPTURE(stage);
        double squares = 0;
        for (const Outcome& outcome : train_all(ranks, stage, false, max_norm)) {
            REQUIRE(outcome.norms == replicated.norms);
            REQUIRE(outcome.parameters == replicated.parameters);
            for (const auto& chunk : outcome.last_gradients)
                for (const float gradient : chunk)
                    squares += static_cast<double>(gradient) * gradient;
        }
        REQUIRE(std::sqrt(squares) == Approx(max_norm).epsilon(1e-5));
    }
}

TEST_CASE("sharded: the gaps of a chunk's gradient stay 0 when it is clipped") {
    constexpr std::size_t ranks = 3, layers = 4;
    for (const int stage : {1, 2, 3}) {
        CAPTURE(stage);
        const std::vector<Outcome> outcomes = train_all(ranks, stage, false, 0.125);
        for (std::size_t layer = 0; layer < layers; layer++) {
            CAPTURE(layer);
            std::vector<float> whole;  // the weights, a gap, the biases, a gap
            for (const Outcome& outcome : outcomes)
                whole.insert(whole.end(), outcome.last_gradients[layer].begin(),
                             outcome.last_gradients[layer].end());
            const auto in = static_cast<std::size_t>(widths[layer]);
            const auto out = static_cast<std::size_t>(widths[layer + 1]);
            const std::size_t biases = (in * out + 15) / 16 * 16;
            REQUIRE(whole.size() > biases + out);
            for (std::size_t i = in * out; i < whole.size(); i++)
                if (i < biases || i >= biases + out)
                    REQUIRE(whole[i] == 0.0f);
        }
    }
}

// The lowest layer, the weights of one in the middle, and the biases of the last.
TEST_CASE("sharded: frozen parameters stay rank 0's, and the others learn with DDP's bits") {
    const std::vector<std::string> frozen = {"linear1.weight", "linear1.bias", "linear3.weight",
                                             "linear4.bias"};
    const auto train_frozen = [&](int stage) { return train_all(3, stage, true, {}, frozen); };
    const Outcome replicated = train_frozen(0)[0];
    REQUIRE(replicated.frozen.size() == frozen.size());
    for (const int stage : {1, 2, 3}) {
        CAPTURE(stage);
        for (const Outcome& outcome : train_frozen(stage)) {
            REQUIRE(outcome.frozen == replicated.frozen);
            REQUIRE(outcome.parameters == replicated.parameters);
        }
    }
}

TEST_CASE("sharded: what a rank keeps and receives is what the bill says") {
    constexpr std::size_t ranks = 3, layers = 4;
    std::size_t chunks = 0, largest = 0;
    for (std::size_t layer = 0; layer < layers; layer++) {
        chunks += chunk_bytes(layer, ranks);
        largest = std::max(largest, ranks * chunk_bytes(layer, ranks));
    }
    const auto stage = [](int number) { return train_all(ranks, number, true)[1]; };
    const Outcome one = stage(1), two = stage(2), three = stage(3);
    REQUIRE(one.held.parameters == ranks * chunks);
    REQUIRE(one.held.gradients == ranks * chunks);
    REQUIRE(two.held.parameters == ranks * chunks);
    REQUIRE(two.held.gradients == chunks + 2 * largest);
    REQUIRE(three.held.parameters == chunks + 2 * largest);
    REQUIRE(three.held.gradients == chunks + 2 * largest);
    REQUIRE(one.received == 2 * (ranks - 1) * chunks);
    REQUIRE(two.received == 2 * (ranks - 1) * chunks);
    // Two units are still there when backward begins: the last two are not gathered twice.
    REQUIRE(three.received ==
            (ranks - 1) * (3 * chunks - chunk_bytes(2, ranks) - chunk_bytes(3, ranks)));
}

namespace {

// Returns what both streams of rank 1 did in the second step of stage 3.
std::vector<StreamSpan> watched_step(bool prefetches) {
    constexpr int ranks = 3, watched_rank = 1;
    World world(thread_options(ranks));
    std::vector<StreamSpan> spans;
    world.run([&](Rank& rank) {
        rank.select_device();
        auto& device = make_run_scoped<Device>(rank, test_memory);
        Random random(7);
        const auto model = make_mlp(device, random, widths);
        const auto communicator = make_native_communicator(rank, 4 << 20);
        ShardedDataParallel sharded(*communicator, device, blocks_of(*model), 3,
                                    {.prefetch = prefetches});
        Sgd optimizer(sharded.chunks(), 0.05);
        StreamTrack compute("compute", device.stream());
        StreamTrack communication("communication", sharded.communication_stream());
        Tape tape(device);
        for (const bool is_watched : {false, true}) {
            if (is_watched)
                sharded.set_tracks(&compute, &communication);
            const Batch batch = batch_of(device, {rank.rank(), rank.rank() + 3});
            sharded.backward(
                cross_entropy(sharded.forward(tape.constant(batch.images)), batch.labels));
            optimizer.step();
            optimizer.zero_gradients();
            sharded.after_step();
            tape.clear();
        }
        communicator->synchronize(device.stream());
        if (rank.rank() == watched_rank) {
            spans = compute.read(watched_rank);
            for (const StreamSpan& span : communication.read(watched_rank))
                spans.push_back(span);
        }
        rank.barrier();
    });
    return spans;
}

// Returns what one stream did, in its order, but for waiting.
std::vector<std::string> order_on(const std::string& track, const std::vector<StreamSpan>& spans) {
    std::vector<std::string> order;
    for (const StreamSpan& span : spans)
        if (span.track == track && !span.what.starts_with("waiting"))
            order.push_back(span.what);
    return order;
}

}  // namespace

TEST_CASE("sharded: a unit is gathered one block ahead of its backward, or when that begins") {
    using Order = std::vector<std::string>;
    const auto ahead = watched_step(true), late = watched_step(false);
    for (const auto& spans : {ahead, late})
        REQUIRE(order_on("compute", spans) ==
                Order{"forward linear1", "forward linear2", "forward linear3", "forward linear4",
                      "backward loss", "backward linear4", "backward linear3", "backward linear2",
                      "backward linear1", "optimizer"});
    // Ahead, linear2 and linear1 are gathered before the sum of the block above is sent.
    REQUIRE(order_on("communication", ahead) ==
            Order{"gather linear1", "gather linear2", "gather linear3", "gather linear4",
                  "reduce linear4", "gather linear2", "reduce linear3", "gather linear1",
                  "reduce linear2", "reduce linear1"});
    REQUIRE(order_on("communication", late) ==
            Order{"gather linear1", "gather linear2", "gather linear3", "gather linear4",
                  "reduce linear4", "reduce linear3", "gather linear2", "reduce linear2",
                  "gather linear1", "reduce linear1"});
}

namespace {

// Returns whether the second of two units arrives while the compute stream stands still in front of
// the first one.
bool arrives_early(bool prefetches) {
    World world(thread_options(3));
    std::atomic<bool> arrives = false;
    world.run([&](Rank& rank) {
        rank.select_device();
        auto& device = make_run_scoped<Device>(rank, test_memory);
        Random random(7);
        const auto model = make_mlp(device, random, {64, 37, 10});
        const auto communicator = make_native_communicator(rank, 4 << 20);
        ShardedDataParallel sharded(*communicator, device, blocks_of(*model), 3,
                                    {.prefetch = prefetches});
        const Batch batch = batch_of(device, {rank.rank(), rank.rank() + 3});
        Tape tape(device);
        std::promise<void> gate;
        for (const bool is_held : {false, true}) {
            const Variable scores = sharded.forward([&] {
                if (is_held)
                    DDP_CHECK(cudaLaunchHostFunc(
                        device.stream(),
                        [](void* held) {
                            static_cast<std::promise<void>*>(held)->get_future().wait();
                        },
                        &gate));
                return model->forward(tape.constant(batch.images));
            });
            if (is_held) {
                for (const Stopwatch clock; !arrives && clock.seconds() < (prefetches ? 20 : 0.2);)
                    arrives = cudaStreamQuery(sharded.communication_stream()) == cudaSuccess;
                rank.barrier();
                gate.set_value();
            }
            sharded.backward(cross_entropy(scores, batch.labels));
            sharded.after_step();
            for (const auto& chunk : sharded.chunks())
                chunk->clear_gradient();
            tape.clear();
        }
        communicator->synchronize(device.stream());
        rank.barrier();
    });
    return arrives;
}

}  // namespace

TEST_CASE("sharded: with prefetch a unit arrives while the one before computes, without it later") {
    REQUIRE(arrives_early(true));
    REQUIRE(!arrives_early(false));
}

TEST_CASE(
    "sharded: a host that others keep waiting is four units ahead of the device, not a step") {
    World world(thread_options(3));
    std::atomic<bool> begins = false;
    std::atomic<int> layers = 0;  // of rank 0's forward in the second step
    int layers_alone = -1;        // when rank 1 comes to that step, late
    world.run([&](Rank& rank) {
        rank.select_device();
        auto& device = make_run_scoped<Device>(rank, test_memory);
        Random random(7);
        const auto model = make_mlp(device, random, {64, 37, 29, 23, 19, 17, 13, 11, 10});
        const auto communicator = make_native_communicator(rank, 4 << 20);
        ShardedDataParallel sharded(*communicator, device, blocks_of(*model), 3);
        const Batch batch = batch_of(device, {rank.rank(), rank.rank() + 3});
        Tape tape(device);
        for (const bool is_second : {false, true}) {
            rank.barrier();
            if (is_second && rank.rank() == 0)
                model->observe([&](const Module&) { layers++; });
            if (is_second && rank.rank() == 1) {
                for (const Stopwatch clock; !begins && clock.seconds() < 20;)
                    std::this_thread::yield();
                std::this_thread::sleep_for(std::chrono::milliseconds(200));
                layers_alone = layers;
            }
            const Variable scores = sharded.forward([&] {
                begins = begins || (is_second && rank.rank() == 0);
                return model->forward(tape.constant(batch.images));
            });
            sharded.backward(cross_entropy(scores, batch.labels));
            sharded.after_step();
            for (const auto& chunk : sharded.chunks())
                chunk->clear_gradient();
            tape.clear();
        }
        communicator->synchronize(device.stream());
        rank.barrier();
    });
    CAPTURE(layers_alone);
    REQUIRE(begins);
    REQUIRE(layers == 1 + 8 + 7);  // flattened; linear, and between them ReLU
    REQUIRE(layers_alone <= 1 + 4 + 4);
}

TEST_CASE("sharded: refusals in one sentence") {
    World world(thread_options(1));
    world.run([&](Rank& rank) {
        rank.select_device();
        auto& device = make_run_scoped<Device>(rank, test_memory);
        Random random(1);
        const auto model = make_mlp(device, random, widths);
        const auto communicator = make_native_communicator(rank, 4 << 20);
        REQUIRE_THROWS_WITH(ShardedDataParallel(*communicator, device, blocks_of(*model), 4),
                            "there are stages 1, 2 and 3, not 4");
        REQUIRE_THROWS_WITH(
            ShardedDataParallel(*communicator, device, blocks_of(*model), 2, {.bfloat16 = true}),
            Catch::Contains("only stage 3 gathers in bfloat16"));
        for (const auto& parameter : model->parameters())
            parameter->is_frozen = true;
        REQUIRE_THROWS_WITH(units_of(blocks_of(*model), 1),
                            Catch::Contains("there is nothing to shard"));
    });
}

}  // namespace ddp::test
