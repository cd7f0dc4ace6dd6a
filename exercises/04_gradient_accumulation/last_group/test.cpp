// The exercise last_group: predicted memory beside what real steps have taken, and the gradient of
// every step, which tells the samples in it.
#include "exercises/04_gradient_accumulation/last_group.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "01_sgd/operations.hpp"
#include "common/report/units.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

// ---- Task largest

struct Budget {
    NetworkSizes sizes;
    std::size_t bytes;
    int right;  // the most samples of a step that fitted, by measuring
    std::string hint;
};
const std::string backward = "In backward, where on its way are the most gradients alive?";
const std::vector<Budget> budgets = {
    {{130, 100, 20, 10}, 1'000'000, 358, backward},
    {{100, 20, 200, 10}, 1'000'000, 237, "The second hidden layer is the widest here."},
    {{900, 100, 20, 10}, 1'500'000, 136, "Parameters take most of the budget here."},
    {{20, 30, 40, 150}, 1'000'000, 220, "The outputs are the widest here."},
    {{900, 100, 20, 10}, 300'000, 0, "Not even the parameters fit: that is 0 samples."},
};

// Returns which of the usual mistakes leads to `yours`, or the case's own hint.
std::string cause_of(const Budget& budget, int yours) {
    const double x = budget.sizes.inputs, h1 = budget.sizes.hidden1, h2 = budget.sizes.hidden2,
                 y = budget.sizes.outputs, numbers = static_cast<double>(budget.bytes) / 4,
                 weights = x * h1 + h1 * h2 + h2 * y, kept = x + 2 * h1 + 2 * h2 + 4 * y,
                 widest = std::max({h1, h2, y});
    const std::tuple<double, double, std::string> mistakes[] = {
        {weights, kept + 2 * widest, "Parameters have gradients, which take as much."},
        {2 * weights, kept, backward},
        {2 * weights, kept + widest,
         "While backward visits an operation, two gradients are alive: its output's and its "
         "input's."},
        {2 * weights, kept - x + 2 * widest, "x, the input, is on the device as well."},
        {2 * weights, kept - h1 - h2 + 2 * widest,
         "For each hidden layer, both the product and its square are on the tape."}};
    for (const auto& [fixed, per_sample, cause] : mistakes)
        if (std::abs((numbers - fixed) / per_sample - yours) <= 1)
            return cause;
    return budget.hint;
}

void check_largest() {
    for (const Budget& budget : budgets) {
        const NetworkSizes& sizes = budget.sizes;
        const int yours = largest_micro_batch(sizes, budget.bytes);
        if (std::abs(yours - budget.right) > 0.03 * budget.right)
            throw Wrong("A network of " + std::to_string(sizes.inputs) + ", " +
                        std::to_string(sizes.hidden1) + ", " + std::to_string(sizes.hidden2) +
                        " and " + std::to_string(sizes.outputs) + " numbers, and a budget of " +
                        format_bytes(budget.bytes) + ": you say " + std::to_string(yours) +
                        " samples at a time, and " + std::to_string(budget.right) +
                        " is the most with which a step has fitted.\n" + cause_of(budget, yours));
    }
}

// ---- Task unknown_end

using Values = std::vector<float>;

// An optimizer that stays where it is, and notes the gradient of each step.
struct Witness : Optimizer {
    using Optimizer::Optimizer;
    void step() override {
        const Parameter& weight = *parameters_.front();
        gradients.push_back(weight.has_gradient() ? weight.gradient().to_host()[0] : 0);
    }
    Values gradients;
};

// Sample i has the slope 2^i: the gradient of a step is the mean of its samples' slopes.
struct Epoch {
    std::vector<int> sizes;
    int group;
    Values right;  // gradients
    std::string hint;
};
const std::vector<Epoch> epochs = {
    {{2, 2}, 2, {15 / 4.0F}, "Two equal micro-batches: each weighs a half."},
    {{2, 2, 2, 2, 1}, 2, {15 / 4.0F, 60, 256}, "The rest gets a step: the mean of what it has."},
    {{3, 3, 1}, 3, {127 / 7.0F}, "A mean of means: samples of small micro-batches count more."},
    {{2, 1, 3, 4, 1}, 3, {63 / 6.0F, 1984 / 5.0F}, "The micro-batches of the rest differ in size."},
    {{}, 2, {}, "There is no micro-batch at all."},
};

void check_epoch(const Epoch& epoch) {
    Device device;
    const auto weight = std::make_shared<Parameter>("weight", Tensor(device, {1}, Values{1}));
    Witness witness({weight}, 1);
    std::size_t given = 0;
    int first = 0;
    const auto next = [&]() -> std::optional<Samples> {
        // One may be asked for in advance.
        if (given > (witness.gradients.size() + 1) * static_cast<std::size_t>(epoch.group))
            throw Wrong(
                "A stream may be larger than memory: take a group's step before you "
                "collect the next group.");
        if (given == epoch.sizes.size())
            return std::nullopt;
        const Samples piece{first, epoch.sizes[given++]};
        first += piece.count;
        return piece;
    };
    const auto loss_of = [&](Tape& tape, Samples samples) {
        const auto slopes = static_cast<float>(((1 << samples.count) - 1) << samples.first);
        const Tensor mean(device, {1}, Values{slopes / static_cast<float>(samples.count)});
        return multiply(tape.parameter(weight), tape.constant(mean));
    };
    const int steps = train_epoch(device, witness, loss_of, next, epoch.group);

    std::string words = "Micro-batches of";
    for (const int size : epoch.sizes)
        words += " " + std::to_string(size);
    words += " samples, a step for every " + std::to_string(epoch.group) + ": ";
    const Values &right = epoch.right, &seen = witness.gradients;
    for (std::size_t i = 0; i < std::min(seen.size(), right.size()); i++)
        if (!(std::abs(seen[i] - right[i]) <= 1e-5F * right[i]))
            throw Wrong(words + "the gradient of step " + std::to_string(i + 1) + " is " +
                        std::to_string(seen[i]) + ", right is " + std::to_string(right[i]) + ".\n" +
                        epoch.hint);
    if (seen.size() != right.size())
        throw Wrong(words + "you take " + std::to_string(seen.size()) + " steps, right are " +
                    std::to_string(right.size()) + ".\n" +
                    (seen.size() < right.size() ? epoch.hint : "One has no micro-batch."));
    if (steps != std::ssize(seen))
        throw Wrong(words + "you return " + std::to_string(steps) + ", and have taken " +
                    std::to_string(seen.size()) + " steps.");
    if (weight->has_gradient())
        throw Wrong(words + "a gradient is left at the end. The next epoch would begin with it.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"largest", check_largest},
            {"unknown_end", [] { std::ranges::for_each(epochs, check_epoch); }}};
}

}  // namespace ddp::test
