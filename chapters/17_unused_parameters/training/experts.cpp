#include "17_unused_parameters/training/experts.hpp"

#include "01_sgd/operations.hpp"
#include "03_network/cross_entropy.hpp"
#include "03_network/optimizers.hpp"
#include "04_gradient_accumulation/accumulate.hpp"

namespace ddp {

Experts::Experts(Device& device, int width, Random& random)
    : Module("experts"),
      flatten_("flatten"),
      relu_("relu"),
      trunk_("trunk", device, features, width, random),
      head_("head", device, width, classes, random) {
    for (int i = 0; i < count; i++)
        experts_.emplace_back("expert" + std::to_string(i), device, width, width, random);
}

Variable Experts::forward(Variable input) {
    const Variable trunk = relu_.forward(trunk_.forward(flatten_.forward(input)));
    const auto expert = [&](int i) {
        return relu_.forward(experts_[static_cast<std::size_t>(i)].forward(trunk));
    };
    Variable sum = expert(route_.at(0));
    for (std::size_t i = 1; i < route_.size(); i++)
        sum = add(sum, expert(route_[i]));
    return head_.forward(sum);
}

Parameters Experts::parameters() const {
    Parameters all = trunk_.parameters();
    for (const Linear& expert : experts_)
        for (const auto& parameter : expert.parameters())
            all.push_back(parameter);
    for (const auto& parameter : head_.parameters())
        all.push_back(parameter);
    return all;
}

Batch drawn_batch(Device& device, std::uint64_t seed, int step, int rank, int samples) {
    Random random(seed + 1000 * static_cast<std::uint64_t>(step) +
                  static_cast<std::uint64_t>(rank) + 1);
    std::vector<float> images(static_cast<std::size_t>(samples) * Experts::features);
    for (float& pixel : images)
        pixel = random.uniform(-1, 1);
    std::vector<int> labels(static_cast<std::size_t>(samples));
    for (int& label : labels)
        label = static_cast<int>(random.below(Experts::classes));
    return {Tensor(device, {samples, Experts::features}, images),
            Labels(device, {samples}, labels)};
}

std::vector<std::vector<float>> learn_on_one_rank(Device& device, int width, std::uint64_t seed,
                                                  const Routes& routes) {
    Random random(seed);
    Experts model(device, width, random);
    Sgd optimizer(model.parameters(), expert_learning_rate);
    Tape tape(device);
    for (std::size_t step = 0; step < routes.size(); step++) {
        // A micro-batch for each rank that has a batch in this step.
        const std::vector<Route>& ranks = routes[step];
        std::vector<MicroBatch> batches;
        for (int rank = 0; rank < std::ssize(ranks); rank++)
            if (!ranks[static_cast<std::size_t>(rank)].empty())
                batches.push_back({{rank, 1}, 1 / static_cast<float>(ranks.size())});
        learn_batch(tape, optimizer, batches, [&](Tape& on, Samples rank) {
            const Batch batch =
                drawn_batch(device, seed, static_cast<int>(step), rank.first, expert_batch);
            model.set_route(ranks[static_cast<std::size_t>(rank.first)]);
            return cross_entropy(model.forward(on.constant(batch.images)), batch.labels);
        });
    }
    std::vector<std::vector<float>> learned;
    for (const auto& parameter : model.parameters())
        learned.push_back(parameter->value.to_host());
    return learned;
}

}  // namespace ddp
