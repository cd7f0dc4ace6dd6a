// A network that is split into stages learns what it learns on one rank, to the bit.
#include "06_messages/stage.hpp"

#include <map>

#include "03_network/cross_entropy.hpp"
#include "03_network/layers/without_parameters.hpp"
#include "03_network/linear.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

constexpr int width = 6, samples = 10;
using Gradients = std::map<std::string, std::vector<float>>;

std::unique_ptr<Sequential> stage_layers(Device& device, int first, int last) {
    auto part = std::make_unique<Sequential>("part");
    for (int i = first; i < last; i++) {
        Random random(static_cast<std::uint64_t>(i) + 1);
        part->add<Linear>("linear" + std::to_string(i), device, width, width, random);
        part->add<Relu>("relu" + std::to_string(i));
    }
    return part;
}

struct StageData {
    explicit StageData(Device& device)
        : inputs(device, {samples, width}), labels(device, {samples}) {
        Random random(3);
        std::vector<float> numbers(samples * width);
        for (float& number : numbers)
            number = random.normal();
        std::vector<int> classes;
        for (int i = 0; i < samples; i++)
            classes.push_back(i % width);
        inputs.copy_from(numbers);
        labels.copy_from(classes);
    }
    Tensor inputs;
    Labels labels;
};

void read_gradients(const Sequential& part, Gradients& into) {
    for (const auto& parameter : part.parameters())
        into[parameter->name] = parameter->gradient().to_host();
}

// The gradients by 04_gradient_accumulation, with all layers on one device.
double on_one_device(int layers, int micro_batch, int passes, Gradients& gradients) {
    Device device;
    const StageData data(device);
    const auto part = stage_layers(device, 0, layers);
    Tape tape(device);
    double loss = 0;
    for (int pass = 0; pass < passes; pass++)
        loss = accumulate(
            tape, micro_batches({0, samples}, micro_batch), [&](Tape& tape, Samples some) {
                const auto first = static_cast<std::size_t>(some.first);
                return cross_entropy(part->forward(tape.constant(
                                         data.inputs.view(first * width, {some.count, width}))),
                                     data.labels.view(first, {some.count}));
            });
    read_gradients(*part, gradients);
    return loss;
}

double over_stages(int stages, int ranks, int layers, int micro_batch, int passes,
                   Gradients& gradients) {
    World world(thread_options(ranks));
    std::vector<Gradients> of_rank(static_cast<std::size_t>(ranks));
    std::vector<double> losses(static_cast<std::size_t>(ranks));
    world.run([&](Rank& rank) {
        Device device(1 << 20);
        Peers peers(rank, 1 << 20);
        const StageData data(device);
        const int r = rank.rank();
        if (r < stages) {
            const auto part = stage_layers(device, layers * r / stages, layers * (r + 1) / stages);
            Stage stage(peers, device, *part, stages, width);
            rank.barrier();
            for (int pass = 0; pass < passes; pass++)
                losses[static_cast<std::size_t>(r)] =
                    stage.accumulate(data.inputs, data.labels, micro_batch);
            read_gradients(*part, of_rank[static_cast<std::size_t>(r)]);
        } else {
            rank.barrier();
        }
        rank.barrier();
    });
    for (const Gradients& some : of_rank)
        gradients.insert(some.begin(), some.end());
    for (int r = 0; r < ranks; r++)
        if (r != stages - 1)
            REQUIRE(losses[static_cast<std::size_t>(r)] == 0);
    return losses[static_cast<std::size_t>(stages) - 1];
}

}  // namespace

TEST_CASE("stages: losses and gradients are those of one device, to the bit") {
    constexpr int layers = 5, passes = 2;
    for (int micro_batch : {samples, 5, 3, 1}) {
        Gradients expected;
        const double loss = on_one_device(layers, micro_batch, passes, expected);
        REQUIRE(expected.size() == 2 * layers);
        for (int stages : {1, 2, 3, 5}) {
            CAPTURE(micro_batch, stages);
            Gradients found;
            REQUIRE(over_stages(stages, stages == 2 ? 3 : stages, layers, micro_batch, passes,
                                found) == loss);
            REQUIRE(found == expected);
        }
    }
}

TEST_CASE("stages: every rank does all forward, and then all backward") {
    World world(thread_options(3));
    std::vector<StreamSpan> all;
    world.run([&](Rank& rank) {
        Device device(1 << 20);
        Peers peers(rank, 1 << 20);
        const StageData data(device);
        const auto part = stage_layers(device, rank.rank(), rank.rank() + 1);
        Stage stage(peers, device, *part, 3, width);
        rank.barrier();
        stage.accumulate(data.inputs, data.labels, 5);
        const std::vector<StreamSpan> everyone = gather(rank, stage.spans());
        if (rank.rank() == 0)
            all = everyone;
    });
    REQUIRE(all.size() == 12);
    const char* order[] = {"forward 1", "forward 2", "backward 1", "backward 2"};
    for (std::size_t i = 0; i < 12; i++) {
        REQUIRE(all[i].rank == static_cast<int>(i / 4));
        REQUIRE(all[i].what == order[i % 4]);
        REQUIRE(all[i].end_s >= all[i].begin_s);
        if (i % 4 > 0)
            REQUIRE(all[i].begin_s >= all[i - 1].end_s);
    }
}

TEST_CASE("stages: the predicted idle time, and ranks without a stage") {
    REQUIRE(predicted_idle(1, 4) == 0);
    REQUIRE(predicted_idle(2, 1) == Approx(0.5));
    REQUIRE(predicted_idle(2, 4) == Approx(0.2));
    REQUIRE(predicted_idle(4, 12) == Approx(0.2));
    World world(thread_options(3));
    const std::string cause = failure_of(world, [](Rank& rank) {
        Device device;
        Peers peers(rank, 1 << 16);
        Sequential none("none");
        Stage(peers, device, none, 2, 1);
        rank.barrier();
    });
    REQUIRE(has(cause, "rank 2 has none of 2 stages"));
}

}  // namespace ddp::test
