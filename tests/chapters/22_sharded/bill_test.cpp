// The bill beside what a step really takes: of the device, by its own count, and of the arena.
#include "22_sharded/bill.hpp"

#include <algorithm>

#include "03_network/cross_entropy.hpp"
#include "03_network/models.hpp"
#include "03_network/optimizers.hpp"
#include "06_messages/peers.hpp"
#include "15_overlap/ddp.hpp"
#include "22_sharded/sharded.hpp"
#include "22_sharded/support/stage_models.hpp"
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
    std::size_t communicator = 0;  // what it has taken, without the arrays that lie there
    Bill bill;

    std::size_t total() const {
        return parameters + gradients + moments + activations + communicator;
    }
};

// What is measured: a model that is made on the host, and a loss on the device.
struct Subject {
    Module& model;
    std::function<Blocks()> blocks;
    std::size_t activations;
    std::function<Variable(Tape& tape)> loss;
};

// Returns what all ranks together take of the process's devices while they do this, shared evenly.
std::size_t taken_by(Rank& rank, const std::function<void()>& work) {
    const auto free_bytes = [&] {
        rank.barrier();
        std::size_t free = 0, total = 0;
        DDP_CHECK(cudaMemGetInfo(&free, &total));
        rank.barrier();
        return free;
    };
    const std::size_t before = free_bytes();
    work();
    return (before - free_bytes()) / static_cast<std::size_t>(rank.world_size());
}

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

Measured measure(Rank& rank, Device& device, const Subject& subject, int stage,
                 const ShardOptions& options) {
    Measured measured;
    measured.bill = bill_of(subject.blocks(), stage, rank.world_size(), 2, options);
    measured.bill.activations = subject.activations;
    std::unique_ptr<Communicator> communicator;
    const std::size_t arena = arena_bytes_of(subject.blocks(), stage, rank.world_size(), options);
    measured.communicator =
        taken_by(rank, [&] { communicator = make_native_communicator(rank, arena); });
    Tape tape(device);
    // Two steps: the first one leaves nothing that the second one does not find.
    const auto measure_steps = [&](auto& replica, Adam& adam, const auto& after_step) {
        rank.barrier();
        for (int i = 0; i < 2; i++)
            measured.activations = most_of(device, [&] {
                replica.backward(replica.forward([&] { return subject.loss(tape); }));
                adam.step();
                adam.zero_gradients();
                after_step();
                tape.clear();
            });
        communicator->synchronize(device.stream());
        rank.barrier();
    };
    const Parameters parameters = subject.model.parameters();
    if (stage == 0) {
        const std::size_t empty = device.memory().live_bytes;
        for (const auto& parameter : parameters)
            parameter->value = Tensor(device, parameter->value.shape(), parameter->value.to_host());
        measured.parameters = device.memory().live_bytes - empty;
        DistributedDataParallel ddp(*communicator, device, subject.model);
        const auto adam = measured_adam(device, parameters, measured);
        measure_steps(ddp, *adam, [] {});
        // From the first gradient to the end of the last: they are views of one array.
        const auto ends = [&](const auto& parameter) { return parameter->gradient_for_writing(); };
        std::byte *first = nullptr, *last = nullptr;
        for (const auto& parameter : parameters) {
            auto* begin = reinterpret_cast<std::byte*>(ends(parameter).data());
            first = first == nullptr ? begin : std::min(first, begin);
            last = std::max(last, begin + parameter->value.bytes());
        }
        measured.gradients = static_cast<std::size_t>(last - first);
        measured.communicator -= measured.gradients;
    } else {
        ShardedDataParallel sharded(*communicator, device, subject.blocks(), stage, options);
        const auto adam = measured_adam(device, sharded.chunks(), measured);
        measure_steps(sharded, *adam, [&] { sharded.after_step(); });
        measured.parameters = sharded.held().parameters;
        measured.gradients = sharded.held().gradients;
        measured.communicator -= measured.parameters + measured.gradients;
    }
    return measured;
}

Measured measure_perceptron(Rank& rank, int stage, const ShardOptions& options = {}) {
    rank.select_device();
    auto& host = make_run_scoped<Device>(rank, 0, pinned_memory);
    auto& device = make_run_scoped<Device>(rank, std::size_t{16} << 20);
    Random random(7);
    const auto model = make_mlp(host, random, bill_widths);
    std::vector<int> own;
    for (int i = 0; i < bill_samples; i++)
        own.push_back(rank.rank() + i);
    const Batch batch = batch_of(device, own);
    return measure(
        rank, device,
        {*model, [&] { return blocks_of(*model); }, mlp_activations(bill_widths, bill_samples),
         [&](Tape& tape) {
             return cross_entropy(model->forward(tape.constant(batch.images)), batch.labels);
         }},
        stage, options);
}

Measured measure_transformer(Rank& rank, int stage) {
    rank.select_device();
    auto& host = make_run_scoped<Device>(rank, 0, pinned_memory);
    auto& device = make_run_scoped<Device>(rank, std::size_t{48} << 20);
    const auto model = make_stage_model("transformer", host, 2, 3);
    model->prepare(rank, device, {});
    TrainingState state;
    return measure(rank, device,
                   {model->module(), [&] { return model->blocks(); }, model->activations(),
                    [&](Tape& tape) {
                        state.step++;
                        return model->loss(tape, state);
                    }},
                   stage, {});
}

// Returns what the last rank has measured.
Measured of_last_rank(int ranks, const std::function<Measured(Rank& rank)>& work) {
    World world(thread_options(ranks));
    Measured measured;
    world.run([&](Rank& rank) {
        const Measured mine = work(rank);
        if (rank.rank() == ranks - 1)
            measured = mine;
    });
    return measured;
}

bool is_near(std::size_t measured, std::size_t bill) {
    return static_cast<double>(measured) == Approx(static_cast<double>(bill)).epsilon(0.05);
}

// Returns what the communicator has taken and nobody uses: a GPU gives memory in pages of 2 MiB.
std::size_t unused_page(const Measured& measured) {
    constexpr std::size_t page = kernels_run_on_cpu ? 1 : 2 << 20;
    const std::size_t excess =
        measured.communicator - std::min(measured.communicator, measured.bill.communicator);
    return excess < page ? excess : 0;
}

void check_bill(const Measured& measured) {
    const Bill& bill = measured.bill;
    CAPTURE(measured.parameters, measured.gradients, measured.moments, measured.activations,
            measured.communicator, bill.parameters, bill.gathered, bill.gradients, bill.buckets,
            bill.moments, bill.activations, bill.communicator);
    CHECK(is_near(measured.parameters, bill.parameters + bill.gathered));
    CHECK(is_near(measured.gradients, bill.gradients + bill.buckets));
    CHECK(is_near(measured.moments, bill.moments));
    CHECK(is_near(measured.activations, bill.activations));
    CHECK(is_near(measured.communicator - unused_page(measured), bill.communicator));
    CHECK(is_near(measured.total() - unused_page(measured), bill.total()));
}

}  // namespace

TEST_CASE("sharded bill: measured within 5 % by kind, for each stage and 1, 3 and 4 ranks") {
    for (const int ranks : {1, 3, 4})
        for (const int stage : {0, 1, 2, 3}) {
            CAPTURE(ranks, stage);
            check_bill(
                of_last_rank(ranks, [&](Rank& rank) { return measure_perceptron(rank, stage); }));
        }
}

TEST_CASE("sharded bill: measured within 5 % with each of the options, on 2 and on 3 ranks") {
    for (const int ranks : {2, 3})
        for (const ShardOptions& options :
             {ShardOptions{.bfloat16 = true}, ShardOptions{.reshard_after_forward = false},
              ShardOptions{.keep_gradients = true}}) {
            CAPTURE(ranks, options.bfloat16, options.reshard_after_forward);
            check_bill(of_last_rank(
                ranks, [&](Rank& rank) { return measure_perceptron(rank, 3, options); }));
        }
}

TEST_CASE("sharded bill: a transformer's peak at stage 3 is its chunks, two blocks and the root") {
    const auto measured_at = [](int stage, int ranks) {
        const Measured measured =
            of_last_rank(ranks, [&](Rank& rank) { return measure_transformer(rank, stage); });
        check_bill(measured);
        return measured;
    };
    const Measured replicated = measured_at(0, 4);
    // By the sizes of the model alone: W wide, F in the hidden layer, 32 tokens; biases, too.
    constexpr std::size_t w = 128, f = 512;
    constexpr std::size_t attention = 4 * (w * w + w), feed_forward = 2 * w * f + f + w;
    constexpr std::size_t encoder = attention + feed_forward + 2 * 2 * w;
    constexpr std::size_t decoder = 2 * attention + feed_forward + 3 * 2 * w;
    constexpr std::size_t root = 32 * w + 2 * 2 * w, all = 4 * (encoder + decoder) + root;
    REQUIRE(replicated.bill.parameters == 4 * all);
    for (const int ranks : {1, 4}) {
        CAPTURE(ranks);
        const Measured measured = measured_at(3, ranks);
        const std::size_t of_model =
            measured.total() - measured.activations - measured.communicator;
        // 16 bytes for P / N parameters; two gathered blocks, and the gradients of two; the root's.
        REQUIRE(static_cast<double>(of_model) <
                1.004 * (16.0 * all / ranks + 2 * 4.0 * (2 * decoder + root)));
        // The communicator's own does not grow with the model.
        REQUIRE(measured.communicator - unused_page(measured) < Peers::own_bytes + (32 << 10));
        REQUIRE((ranks < 4 || 5 * measured.total() < 2 * replicated.total()));
    }
    // DDP's has a copy of it.
    REQUIRE(replicated.communicator > 4 * all + Peers::own_bytes);
}

}  // namespace ddp::test
