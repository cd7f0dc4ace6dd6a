// The bill beside what a step really takes: of the device, by its own count, and of the arena.
#include "22_sharded/bill.hpp"

#include "03_network/cross_entropy.hpp"
#include "03_network/models.hpp"
#include "03_network/optimizers.hpp"
#include "15_overlap/ddp.hpp"
#include "22_sharded/sharded.hpp"
#include "tests/chapters/support/replicas.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const std::vector<int> bill_widths = {64, 237, 229, 223, 211, 10};
constexpr int bill_samples = 24;

struct Measured {
    std::size_t parameters = 0, gradients = 0;  // with gathered copies, and with buckets in flight
    std::size_t moments = 0, activations = 0;
    Bill bill;

    std::size_t total() const { return parameters + gradients + moments + activations; }
};

// Returns what `step` takes of the device at the most, beyond what is in use before.
std::size_t most_of(Device& device, const std::function<void()>& step) {
    const std::size_t before = device.memory().live_bytes;
    std::size_t most = before;
    device.observe_memory(
        [&](const Device::Memory& now) { most = std::max(most, now.live_bytes); });
    step();
    device.observe_memory({});
    return most - before;
}

std::unique_ptr<Adam> measured_adam(Device& device, const Parameters& parameters,
                                    Measured& measured) {
    const std::size_t before = device.memory().live_bytes;
    auto adam = std::make_unique<Adam>(parameters, 0.01);
    measured.moments = device.memory().live_bytes - before;
    return adam;
}

Measured measure(Rank& rank, int stage) {
    rank.select_device();
    auto& device = make_run_scoped<Device>(rank, std::size_t{16} << 20);
    Random random(7);
    const std::size_t empty = device.memory().live_bytes;
    const auto model = make_mlp(device, random, bill_widths);
    Measured measured;
    measured.parameters = device.memory().live_bytes - empty;
    measured.bill =
        bill_of(units_of(blocks_of(*model), rank.world_size()), stage, rank.world_size(), 2);
    measured.bill.activations = mlp_activations(bill_widths, bill_samples);
    const auto communicator = make_native_communicator(
        rank, ShardedDataParallel::arena_bytes(blocks_of(*model), rank.world_size()));
    std::vector<int> own;
    for (int i = 0; i < bill_samples; i++)
        own.push_back(rank.rank() + i);
    const Batch batch = batch_of(device, own);
    Tape tape(device);
    // Two steps: the first one leaves nothing that the second one does not find.
    const auto measure_steps = [&](auto& replica, Adam& adam, const auto& after_step) {
        rank.barrier();
        for (int i = 0; i < 2; i++)
            measured.activations = most_of(device, [&] {
                replica.backward(
                    cross_entropy(replica.forward(tape.constant(batch.images)), batch.labels));
                adam.step();
                adam.zero_gradients();
                after_step();
                tape.clear();
            });
        communicator->synchronize(device.stream());
        rank.barrier();
    };
    if (stage == 0) {
        DistributedDataParallel ddp(*communicator, device, *model);
        const auto adam = measured_adam(device, model->parameters(), measured);
        measure_steps(ddp, *adam, [] {});
        // From the first gradient to the end of the last: they are views of one array.
        const auto ends = [&](const auto& parameter) { return parameter->gradient_for_writing(); };
        std::byte *first = nullptr, *last = nullptr;
        for (const auto& parameter : model->parameters()) {
            auto* begin = reinterpret_cast<std::byte*>(ends(parameter).data());
            first = first == nullptr ? begin : std::min(first, begin);
            last = std::max(last, begin + parameter->value.bytes());
        }
        measured.gradients = static_cast<std::size_t>(last - first);
    } else {
        ShardedDataParallel sharded(*communicator, device, blocks_of(*model), stage);
        const auto adam = measured_adam(device, sharded.chunks(), measured);
        measure_steps(sharded, *adam, [&] { sharded.after_step(); });
        // The device has given back what the model had before.
        measured.parameters = sharded.held().parameters;
        measured.gradients = sharded.held().gradients;
    }
    return measured;
}

bool is_near(std::size_t measured, std::size_t bill) {
    return static_cast<double>(measured) == Approx(static_cast<double>(bill)).epsilon(0.05);
}

}  // namespace

TEST_CASE("sharded bill: measured within 5 % by kind, for each stage and 1, 2, 4 and 8 ranks") {
    for (const int ranks : {1, 2, 4, 8})
        for (const int stage : {0, 1, 2, 3}) {
            World world(thread_options(ranks));
            Measured measured;
            world.run([&](Rank& rank) {
                const Measured mine = measure(rank, stage);
                if (rank.rank() == ranks - 1)
                    measured = mine;
            });
            const Bill& bill = measured.bill;
            CAPTURE(ranks, stage, measured.parameters, measured.gradients, measured.moments,
                    measured.activations, bill.parameters, bill.gathered, bill.gradients,
                    bill.buckets, bill.moments, bill.activations);
            CHECK(is_near(measured.parameters, bill.parameters + bill.gathered));
            CHECK(is_near(measured.gradients, bill.gradients + bill.buckets));
            CHECK(is_near(measured.moments, bill.moments));
            CHECK(is_near(measured.activations, bill.activations));
            CHECK(is_near(measured.total(), bill.total()));
        }
}

TEST_CASE("sharded bill: from stage to stage, and from rank to rank") {
    Random random(1);
    World world(thread_options(1));
    world.run([&](Rank& rank) {
        rank.select_device();
        auto& device = make_run_scoped<Device>(rank, std::size_t{16} << 20);
        const auto model = make_mlp(device, random, bill_widths);
        const auto bill = [&](int stage, int ranks) {
            return bill_of(units_of(blocks_of(*model), ranks), stage, ranks, 2);
        };
        std::size_t learned = 0, largest = 0;
        for (const auto& parameter : model->parameters()) {
            learned += parameter->value.bytes();
            largest = std::max(largest, parameter->value.bytes());
        }
        REQUIRE(bill(0, 4).total() == Approx(4.0 * learned).epsilon(0.01));
        for (const int ranks : {2, 4, 8}) {
            CAPTURE(ranks);
            REQUIRE(bill(1, ranks).total() == Approx((2 + 2.0 / ranks) * learned).epsilon(0.02));
            REQUIRE(bill(2, ranks).total() ==
                    Approx((1 + 3.0 / ranks) * learned + 2.0 * largest).epsilon(0.02));
            // 16 bytes for P / N parameters, two gathered blocks, and the gradients of two blocks.
            REQUIRE(bill(3, ranks).total() ==
                    Approx(4.0 / ranks * learned + 4.0 * largest).epsilon(0.03));
        }
        REQUIRE(mlp_activations({5, 3, 2}, 7) == 7 * 4 * (1 + 2 * 3 + 2 * 2 + 6));
    });
}

}  // namespace ddp::test
