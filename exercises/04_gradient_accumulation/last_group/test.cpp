// The exercise last_group: predicted memory beside what a real step takes, and the gradients of
// every step beside those of one batch.
#include "exercises/04_gradient_accumulation/last_group.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "01_sgd/operations.hpp"
#include "04_gradient_accumulation/batch_models.hpp"
#include "04_gradient_accumulation/batch_operations.hpp"
#include "common/report/units.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

// ---- Task largest

Tensor zeros(Device& device, int rows, int columns) {
    Tensor tensor(device, {rows, columns});
    fill(tensor, 0);
    return tensor;
}

// The most that a step with so many samples at a time has held at the same time, in bytes.
std::size_t measured_bytes(const NetworkSizes& sizes, int samples) {
    Device device;
    const auto weights = [&](const std::string& name, int inputs, int outputs) {
        return std::make_shared<Parameter>(name, zeros(device, inputs, outputs));
    };
    const auto first = weights("first", sizes.inputs, sizes.hidden1),
               second = weights("second", sizes.hidden1, sizes.hidden2),
               third = weights("third", sizes.hidden2, sizes.outputs);
    PlainSgd optimizer({first, second, third}, 0.1);
    Tape tape(device);
    const auto loss_of = [&](Tape& tape, Samples batch) {
        const Variable x = tape.constant(zeros(device, batch.count, sizes.inputs), "x"),
                       y = tape.constant(zeros(device, batch.count, sizes.outputs), "y");
        const Variable hidden1 = square(matrix_product(x, tape.parameter(first)));
        const Variable hidden2 = square(matrix_product(hidden1, tape.parameter(second)));
        return mean(square(subtract(matrix_product(hidden2, tape.parameter(third)), y)));
    };
    accumulate(tape, {{{0, samples}, 1}}, loss_of);
    optimizer.step();
    return device.memory().peak_bytes;
}

// Returns which mistake leads to `yours`, or "" if it is none of the usual ones.
std::string cause_of(const NetworkSizes& sizes, std::size_t budget, int yours) {
    const double x = sizes.inputs, h1 = sizes.hidden1, h2 = sizes.hidden2, y = sizes.outputs;
    const double weights = x * h1 + h1 * h2 + h2 * y, numbers = static_cast<double>(budget) / 4;
    const double kept = x + 2 * h1 + 2 * h2 + 4 * y, widest = std::max({h1, h2, y});
    struct Mistake {
        double fixed, per_sample;
        const char* cause;
    };
    const Mistake mistakes[] = {
        {weights, kept + 2 * widest,
         "You have counted the parameters, but not their gradients, which take as much again."},
        {0, kept + 2 * widest,
         "You have not counted the parameters and their gradients, which do not grow with the "
         "micro-batch."},
        {2 * weights, kept,
         "Look at backward, too: where on its way are the most gradients alive?"},
        {2 * weights, kept + widest,
         "While backward visits an operation, two gradients are alive: its output's and its "
         "input's."},
        {2 * weights, 2 * kept,
         "You count a gradient for every activation. But a gradient is freed when it has been "
         "used: "
         "count those that are alive at the same time."},
        {2 * weights, kept - x + 2 * widest,
         "You have not counted x, the input, which is on the device as well."},
        {2 * weights, kept - y + 2 * widest,
         "You have not counted y, which is on the device as well."},
        {2 * weights, kept - h1 - h2 + 2 * widest,
         "For each hidden layer, both the product and its square are on the tape."},
        {0.5 * weights, (kept + 2 * widest) / 4,
         "An element takes 4 bytes: you have counted elements."},
    };
    for (const Mistake& mistake : mistakes)
        if (std::abs((numbers - mistake.fixed) / mistake.per_sample - yours) <= 1)
            return mistake.cause;
    return "";
}

void check_budget(const NetworkSizes& sizes, std::size_t budget, const std::string& general_hint) {
    // Device gives memory in blocks of 512 bytes; the budgets here are so large that it is little.
    constexpr double tolerance = 0.03;
    constexpr int most = 20'000;
    const int yours = largest_micro_batch(sizes, budget);
    const std::string cause = cause_of(sizes, budget, yours);
    const std::string hint = cause.empty() ? general_hint : cause;
    const std::string network =
        "A network of " + std::to_string(sizes.inputs) + ", " + std::to_string(sizes.hidden1) +
        ", " + std::to_string(sizes.hidden2) + " and " + std::to_string(sizes.outputs) +
        " numbers, and a budget of " + format_bytes(budget) + ": you predict " +
        std::to_string(yours) + " samples at a time";
    if (yours < 1 || yours > most)
        throw Wrong(network + ".\n" + hint);
    const std::size_t taken = measured_bytes(sizes, yours);
    if (static_cast<double>(taken) > (1 + tolerance) * static_cast<double>(budget))
        throw Wrong(network + ", and with them a step has taken " + format_bytes(taken) + ".\n" +
                    hint);
    const int more = yours + std::max(1, static_cast<int>(2 * tolerance * yours));
    const std::size_t with_more = measured_bytes(sizes, more);
    if (with_more <= budget)
        throw Wrong(network + ", but with " + std::to_string(more) + " a step has taken " +
                    format_bytes(with_more) + ", so these also fit.\n" + hint);
    held();
}

void check_largest() {
    check_budget({130, 100, 20, 10}, 1'000'000,
                 "Look at backward, too: where on its way are the most gradients alive?");
    check_budget(
        {100, 20, 200, 10}, 1'000'000,
        "The second hidden layer is the widest here: the worst moment is at another operation.");
    check_budget(
        {900, 100, 20, 10}, 1'500'000,
        "The parameters take most of the budget here, and something else takes as much: what?");
    check_budget({20, 150, 30, 140}, 1'000'000,
                 "There are many outputs here: how many tensors on the tape are as wide as they?");
    check_budget({20, 30, 40, 150}, 1'000'000,
                 "The outputs are the widest here: the worst moment is at another operation.");
    const NetworkSizes sizes{900, 100, 20, 10};
    if (const int yours = largest_micro_batch(sizes, 300'000); yours != 0)
        throw Wrong("The parameters alone take more than a budget of " + format_bytes(300'000) +
                    ": then it is 0 samples, and you say " + std::to_string(yours) + ".");
    if (const int yours = largest_micro_batch({50'000, 50'000, 10, 10}, 4'000'000'000); yours != 0)
        throw Wrong(
            "The parameters of a network of 50000, 50000, 10 and 10 numbers take 10 GB, but "
            "you say that " +
            std::to_string(yours) +
            " samples at a time fit into 4 GB. 50000 times 50000 is more than an int holds: "
            "compute with std::size_t.");
}

// ---- Task unknown_end

// An optimizer that stays where it is, and notes the gradient of each step.
class Witness : public Optimizer {
  public:
    explicit Witness(const HouseBatchModel& model) : Optimizer({model.weights}, 1) {}
    void step() override {
        const Parameter& weights = *parameters_.front();
        gradients.push_back(weights.has_gradient() ? weights.gradient().to_host()
                                                   : std::vector<float>());
    }
    std::vector<std::vector<float>> gradients;
};

std::vector<House> houses(int count) {
    std::vector<House> all;
    for (int i = 0; i < count; i++) {
        const auto number = static_cast<float>(i);
        all.push_back({1 + number * 3, 2 + number, 4 + number * number});
    }
    return all;
}

std::vector<float> right_gradient(Device& device, const HouseBatchModel& model, Samples batch) {
    Tape tape(device);
    model.weights->clear_gradient();
    tape.backward(model.loss(tape, batch));
    const std::vector<float> gradient = model.weights->gradient().to_host();
    model.weights->clear_gradient();
    return gradient;
}

std::string text(const std::vector<float>& gradient) {
    std::string line;
    for (const float value : gradient) {
        char number[32];
        std::snprintf(number, sizeof number, "%s%.4g", line.empty() ? "" : ", ",
                      static_cast<double>(value));
        line += number;
    }
    return line.empty() ? "absent" : "(" + line + ")";
}

bool is_near(const std::vector<float>& a, const std::vector<float>& b) {
    if (a.size() != b.size())
        return false;
    for (std::size_t i = 0; i < a.size(); i++)
        if (!(std::abs(a[i] - b[i]) <= 1e-4f * (1 + std::abs(b[i]))))
            return false;
    return true;
}

std::string joined(const std::vector<int>& numbers) {
    std::string line;
    for (const int number : numbers)
        line += (line.empty() ? "" : ", ") + std::to_string(number);
    return line.empty() ? "none at all" : line;
}

// The samples of each step, if micro-batches of these sizes come one after the other.
std::vector<Samples> steps_of(const std::vector<int>& sizes, int group) {
    std::vector<Samples> steps;
    int first = 0;
    for (std::size_t i = 0; i < sizes.size(); i++) {
        if (i % static_cast<std::size_t>(group) == 0)
            steps.push_back({first, 0});
        steps.back().count += sizes[i];
        first += sizes[i];
    }
    return steps;
}

void check_epoch(const std::vector<int>& sizes, int group, const std::string& hint) {
    Device device;
    const HouseBatchModel model(device, houses(20));
    const std::vector<Samples> right = steps_of(sizes, group);
    std::vector<std::vector<float>> right_gradients;
    for (const Samples& step : right)
        right_gradients.push_back(right_gradient(device, model, step));

    Witness witness(model);
    std::size_t given = 0;
    int first = 0;
    const std::string epoch = "Micro-batches of " + joined(sizes) + " houses, a step for every " +
                              std::to_string(group) + ": ";
    const auto next = [&]() -> std::optional<Samples> {
        // One may be asked for in advance.
        if (given > (witness.gradients.size() + 1) * static_cast<std::size_t>(group))
            throw Wrong(
                epoch + "you ask for micro-batch " + std::to_string(given + 1) +
                " before you have taken step " + std::to_string(witness.gradients.size() + 1) +
                ".\nA stream may be larger than memory: take a group's step before you collect "
                "the next group.");
        if (given == sizes.size())
            return std::nullopt;
        const Samples piece{first, sizes[given++]};
        first += piece.count;
        return piece;
    };
    const auto loss_of = [&](Tape& tape, Samples samples) { return model.loss(tape, samples); };
    const int said = train_epoch(device, witness, loss_of, next, group);

    const std::size_t seen = witness.gradients.size();
    for (std::size_t i = 0; i < std::min(seen, right.size()); i++)
        if (!is_near(witness.gradients[i], right_gradients[i]))
            throw Wrong(epoch + "the gradient of step " + std::to_string(i + 1) + " is " +
                        text(witness.gradients[i]) + ", right is " + text(right_gradients[i]) +
                        ".\n" +
                        (witness.gradients[i].empty()
                             ? "A step without a gradient: does it come before accumulate()?"
                             : hint));
    if (seen > right.size())
        throw Wrong(epoch + "you take step " + std::to_string(seen) +
                    " when there is no micro-batch for it. The data has ended: is there a group?");
    if (seen < right.size())
        throw Wrong(epoch + "you have taken " + std::to_string(seen) + " steps, right are " +
                    std::to_string(right.size()) + ".\n" + hint);
    if (said != static_cast<int>(seen))
        throw Wrong(epoch + "you have taken " + std::to_string(seen) + " steps, and return " +
                    std::to_string(said) + ".");
    if (model.weights->has_gradient())
        throw Wrong(epoch + "a gradient is left at the end. The next epoch would begin with it.");
}

void check_unknown_end() {
    check_epoch({2, 2}, 2,
                "The case: one group of two equal micro-batches, so each weighs a half.");
    check_epoch({2, 2, 2, 2}, 2,
                "The case: two groups. Does the second step begin with the first one's gradient?");
    check_epoch(
        {1, 1, 1, 1, 1, 1, 1}, 3,
        "The rest at the end gets a step too, and its mean is over the samples that it has, not "
        "over those of a full group.");
    check_epoch(
        {3, 3, 1}, 3,
        "A mean of means: the houses of a small micro-batch count more. Each house should count "
        "as much as any other.");
    check_epoch({1, 4, 2, 3, 5}, 2, "The case: all micro-batches differ in size.");
    check_epoch({2, 1, 3, 4, 1}, 3, "The case: the micro-batches of the rest differ in size, too.");
    check_epoch({1, 3}, 4, "The case: no full group, only a rest.");
    check_epoch({4, 4}, 1, "The case: each micro-batch is a group of its own.");
    check_epoch({}, 2, "The case: no micro-batch at all.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"largest", check_largest}, {"unknown_end", check_unknown_end}};
}

}  // namespace ddp::test
