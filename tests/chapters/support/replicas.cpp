#include "tests/chapters/support/replicas.hpp"

#include <algorithm>
#include <cmath>

#include "03_network/cross_entropy.hpp"
#include "03_network/layers/batch_norm2d.hpp"
#include "03_network/layers/conv2d.hpp"
#include "03_network/layers/without_parameters.hpp"
#include "03_network/linear.hpp"
#include "03_network/models.hpp"
#include "03_network/optimizers.hpp"
#include "10_nodes/make_communicator.hpp"
#include "11_data_parallel/replica.hpp"
#include "11_data_parallel/training_result.hpp"
#include "tests/chapters/support/golden_training.hpp"
#include "tests/chapters/support/worlds.hpp"

namespace ddp::test {
namespace {

constexpr int side = 8;
constexpr int step_count = 5;
constexpr int batch_size = 12;  // of all ranks together

// ---- Networks

std::unique_ptr<Sequential> make_convolutions(Device& device, Random& random, bool has_norm) {
    auto cnn = std::make_unique<Sequential>("cnn");
    cnn->add<Conv2d>("conv1", device, Conv2dShape{1, 3, 3, 1, 1}, random);
    if (has_norm)
        cnn->add<BatchNorm2d>("norm1", device, 3).set_training(false);
    cnn->add<Relu>("relu1");
    cnn->add<MaxPool2d>("pool1", 2);
    cnn->add<Conv2d>("conv2", device, Conv2dShape{3, 5, 3}, random);
    cnn->add<Flatten>("flatten");
    cnn->add<Linear>("linear", device, 20, 10, random);
    return cnn;
}

// first, twice the same, frozen, last.
class TiedAndFrozen : public Module {
  public:
    TiedAndFrozen(Device& device, Random& random)
        : Module("tied_and_frozen"),
          flatten_("flatten"),
          relu_("relu"),
          first_("first", device, side * side, 7, random),
          twice_("twice", device, 7, 7, random),
          frozen_("frozen", device, 7, 7, random),
          last_("last", device, 7, 10, random) {
        for (const auto& parameter : frozen_.parameters())
            parameter->is_frozen = true;
    }
    Variable forward(Variable input) override {
        const Variable begin = first_.forward(flatten_.forward(input));
        const Variable middle = twice_.forward(relu_.forward(twice_.forward(begin)));
        return last_.forward(relu_.forward(frozen_.forward(middle)));
    }
    Parameters parameters() const override {
        Parameters all;
        for (const Linear* layer : {&first_, &twice_, &frozen_, &last_})
            for (const auto& parameter : layer->parameters())
                all.push_back(parameter);
        return all;
    }

  private:
    Flatten flatten_;
    Relu relu_;
    Linear first_, twice_, frozen_, last_;
};

// ---- Training

using State = std::vector<std::vector<float>>;  // by parameter

State state_of(const Module& model) {
    State state;
    for (const auto& parameter : model.parameters())
        state.push_back(parameter->value.to_host());
    return state;
}

// On one rank, from all samples; the parameters after each step.
std::vector<State> learn_alone(const MakeModel& make_model, std::uint64_t seed) {
    Device device(test_memory);
    Random random(seed);
    const auto model = make_model(device, random);
    Sgd optimizer(model->parameters(), 0.1);
    std::vector<State> states;
    for (int step = 0; step < step_count; step++) {
        Tape tape(device);
        const Batch batch =
            batch_of(device, part_of(step * batch_size, step * batch_size + batch_size));
        tape.backward(cross_entropy(model->forward(tape.constant(batch.images)), batch.labels));
        optimizer.step();
        optimizer.zero_gradients();
        states.push_back(state_of(*model));
    }
    return states;
}

std::string difference(const Module& model, const State& expected, double tolerance) {
    const State found = state_of(model);
    for (std::size_t p = 0; p < found.size(); p++) {
        double largest = 0;
        for (const float value : expected[p])
            largest = std::max(largest, std::abs(double{value}));
        for (std::size_t i = 0; i < found[p].size(); i++)
            if (!(std::abs(double{found[p][i]} - expected[p][i]) <= tolerance * largest))
                return model.parameters()[p]->name + "[" + std::to_string(i) + "] is " +
                       std::to_string(found[p][i]) + ", and on one rank " +
                       std::to_string(expected[p][i]);
    }
    return "";
}

// The first difference that any rank finds; on every rank.
std::string take_steps(Rank& rank, Device& device, Module& model, Strategy& strategy,
                       const std::vector<State>& expected, double tolerance) {
    Sgd optimizer(model.parameters(), 0.1);
    for (int step = 0; step < step_count; step++) {
        Tape tape(device);
        strategy.learn(batch_of(device, part_of(step * batch_size, step * batch_size + batch_size,
                                                rank.rank(), rank.world_size())),
                       tape);
        optimizer.step();
        optimizer.zero_gradients();
        const std::string mine =
            difference(model, expected[static_cast<std::size_t>(step)], tolerance);
        for (const std::string& theirs : rank.all_gather(mine))
            if (!theirs.empty())
                return "step " + std::to_string(step) + ": " + theirs;
        require_equal_replicas(rank, model.parameters());
    }
    return "";
}

}  // namespace

std::unique_ptr<Module> make_small_mlp(Device& device, Random& random) {
    return make_mlp(device, random, {side * side, 13, 7, 10});
}

std::vector<Network> networks() {
    return {
        {"mlp", make_small_mlp},
        {"cnn",
         [](Device& device, Random& random) { return make_convolutions(device, random, false); }},
        {"cnn with a norm",
         [](Device& device, Random& random) { return make_convolutions(device, random, true); }},
        {"tied and frozen", [](Device& device, Random& random) {
             return std::make_unique<TiedAndFrozen>(device, random);
         }}};
}

Batch batch_of(Device& device, const std::vector<int>& samples) {
    return golden_samples(device, samples, {1, side, side});
}

std::string difference_from_one_rank(World& world, const MakeModel& make_model,
                                     const MakeStrategy& make_strategy, double tolerance) {
    constexpr std::uint64_t seed = 11;
    const std::vector<State> expected = learn_alone(make_model, seed);
    std::string found;
    const std::string failure = failure_of(world, [&](Rank& rank) {
        auto& device = make_run_scoped<Device>(rank, test_memory);
        Random random(seed + static_cast<std::uint64_t>(rank.rank()));
        const auto model = make_model(device, random);
        const auto communicator = make_communicator("native", rank, 1 << 20);
        const auto strategy = make_strategy(*communicator, device, *model);
        const std::string first = take_steps(rank, device, *model, *strategy, expected,
                                             rank.world_size() == 1 ? 0 : tolerance);
        communicator->synchronize(device.stream());
        if (rank.rank() == 0)
            found = first;
    });
    return failure.empty() ? found : failure;
}

std::string difference_from_pytorch(World& world, const MakeStrategy& make_strategy) {
    constexpr double tolerance = 1e-5;
    const Golden golden = read_golden("train_mlp.txt");
    const std::vector<float>& losses = golden.tensor("loss").values;
    const int batch = static_cast<int>(golden.number("batch"));
    std::string found;
    const std::string failure = failure_of(world, [&](Rank& rank) {
        auto& device = make_run_scoped<Device>(rank, test_memory);
        Random random(static_cast<std::uint64_t>(rank.rank()));
        const auto mlp = make_mlp(device, random, {784, 32, 16, 10});
        if (rank.rank() == 0)
            set_golden_weights(*mlp);
        const auto communicator = make_communicator("native", rank, 1 << 20);
        const auto strategy = make_strategy(*communicator, device, *mlp);
        Sgd optimizer(mlp->parameters(), 0.05, 0.9);
        std::string mine;
        for (int step = 0; step < static_cast<int>(losses.size()); step++) {
            Tape tape(device);
            const std::vector<int> part =
                part_of(step * batch, (step + 1) * batch, rank.rank(), rank.world_size());
            const double loss = mean_of_ranks(
                rank, {strategy->learn(golden_samples(device, part, {784}), tape)})[0];
            optimizer.step();
            optimizer.zero_gradients();
            const double expected = losses[static_cast<std::size_t>(step)];
            if (!(std::abs(loss - expected) <= tolerance * expected))
                mine += "step " + std::to_string(step) + ": loss " + std::to_string(loss) +
                        " instead of " + std::to_string(expected) + "\n";
        }
        for (const auto& parameter : mlp->parameters())
            mine +=
                sums_difference("final." + parameter->name, parameter->value, golden, tolerance);
        if (rank.rank() == 0)
            found = mine;
    });
    return failure.empty() ? found : failure;
}

}  // namespace ddp::test
