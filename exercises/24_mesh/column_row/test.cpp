// The exercise column_row, beside one rank that has the whole layer.
#include "exercises/24_mesh/column_row.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "exercises/support/sums.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Numbers = std::vector<double>;

// Every size differs, also from a part of `hidden`: a sum tells by its size what is added up.
constexpr std::size_t inputs = 3, hidden = 20, outputs = 7;

Numbers made(std::size_t count, double seed) {
    Numbers numbers;
    for (std::size_t i = 0; i < count; i++)
        numbers.push_back(std::sin(seed * (1 + static_cast<double>(i))));
    return numbers;
}
const FeedForwardWeights whole{{hidden, inputs, made(hidden* inputs, 1.7)},
                               made(hidden, 2.3),
                               {outputs, hidden, made(outputs* hidden, 0.9)},
                               made(outputs, 3.1)};
const Numbers x = made(inputs, 1.1), dy = made(outputs, 0.7);

// ---- One rank

// Returns w1 x + b1; backward needs to know where that is above 0.
Numbers before_relu() {
    Numbers numbers = whole.b1;
    for (std::size_t h = 0; h < hidden; h++)
        for (std::size_t i = 0; i < inputs; i++)
            numbers[h] += whole.w1.at(h, i) * x[i];
    return numbers;
}

// Returns y, with b2 `biases` times.
Numbers right_y(double biases) {
    const Numbers before = before_relu();
    Numbers y(outputs);
    for (std::size_t o = 0; o < outputs; o++) {
        y[o] = biases * whole.b2[o];
        for (std::size_t h = 0; h < hidden; h++)
            y[o] += whole.w2.at(o, h) * std::max(before[h], 0.0);
    }
    return y;
}

// Returns the gradients, or without `has_relu` those of a layer that has no ReLU.
PartGradients right_gradients(bool has_relu) {
    const Numbers before = before_relu();
    PartGradients gradients{Numbers(inputs), whole};
    gradients.parameters.b2 = dy;
    for (std::size_t h = 0; h < hidden; h++) {
        double& d = gradients.parameters.b1[h] = 0;
        for (std::size_t o = 0; o < outputs; o++) {
            gradients.parameters.w2.at(o, h) = dy[o] * std::max(before[h], 0.0);
            d += before[h] > 0 || !has_relu ? dy[o] * whole.w2.at(o, h) : 0;
        }
        for (std::size_t i = 0; i < inputs; i++) {
            gradients.parameters.w1.at(h, i) = d * x[i];
            gradients.x[i] += d * whole.w1.at(h, i);
        }
    }
    return gradients;
}

// ---- What an answer tells

bool are_close(const Numbers& a, const Numbers& b) {
    return std::ranges::equal(a, b, [](double p, double q) { return std::abs(p - q) < 1e-9; });
}

void require_close(const Numbers& yours, const Numbers& right, const std::string& what,
                   const std::string& hint) {
    if (are_close(yours, right))
        return held();
    std::size_t i = 0;
    while (i < std::min(yours.size(), right.size()) && std::abs(yours[i] - right[i]) < 1e-9)
        i++;
    const auto number = [i](const Numbers& all) {
        return i < all.size() ? std::to_string(all[i]) : "missing";
    };
    throw Wrong(what + ": number " + std::to_string(i) + " is " + number(yours) +
                ", and on one rank it is " + number(right) + ".\n" + hint);
}

// Calls the work of each rank. Its sum may have `wanted` numbers; for other sizes it says why not.
template <class Work>
auto with_the_sum(int ranks, std::size_t wanted, const std::string& of_outputs,
                  const std::string& of_inputs, const Work& work) {
    const std::size_t part = hidden / static_cast<std::size_t>(ranks);
    return with_one_sum(ranks, wanted, [&](int rank, const SumOverRanks& sum_over_ranks) {
        return work(rank, [&](Numbers& numbers) {
            const std::size_t size = numbers.size();
            if (size == wanted)
                return sum_over_ranks(numbers);
            throw Wrong("With " + std::to_string(ranks) + " ranks you add up " +
                        std::to_string(size) + " numbers over the ranks. " +
                        (size == part      ? "These are hidden ones, of which each rank has others:"
                                             " ReLU looks at one at a time, so none is missing."
                         : size == outputs ? of_outputs
                         : size == inputs  ? of_inputs
                                           : "Gradients of weights stay where the weights are: no "
                                             "other rank has a part of them."));
        });
    });
}

void require_part(const FeedForwardWeights& part, int rank, int ranks) {
    const std::string what =
        std::to_string(ranks) + " ranks: the part of rank " + std::to_string(rank) + " ";
    if (part.w2.outputs != outputs)
        throw Wrong(what + "has " + std::to_string(part.w2.outputs) +
                    " outputs of w2. Cut w2 by its inputs, the hidden numbers: cut by its "
                    "outputs, it needs hidden numbers that other ranks have.");
    if (part.w1.inputs != inputs)
        throw Wrong(what + "has " + std::to_string(part.w1.inputs) +
                    " inputs of w1. Cut w1 by its outputs: cut by its inputs, it makes hidden "
                    "numbers that are not complete before ReLU.");
    const std::size_t size = hidden / static_cast<std::size_t>(ranks);
    Numbers w1, b1, w2;
    for (std::size_t h = size * static_cast<std::size_t>(rank); b1.size() < size; h++) {
        b1.push_back(whole.b1[h]);
        for (std::size_t i = 0; i < inputs; i++)
            w1.push_back(whole.w1.at(h, i));
    }
    for (std::size_t o = 0; o < outputs; o++)
        for (std::size_t h = 0; h < size; h++)
            w2.push_back(whole.w2.at(o, size * static_cast<std::size_t>(rank) + h));
    const std::string hint = "A rank has the same hidden numbers in w1, b1 and w2.";
    require_close(part.w1.values, w1, what + "has a wrong w1", hint);
    require_close(part.b1, b1, what + "has a wrong b1", hint);
    require_close(part.w2.values, w2, what + "has a wrong w2", hint);
    require_close(part.b2, whole.b2, what + "has a wrong b2", "Every rank has the whole b2.");
}

void check_forward(int ranks) {
    const std::string about = std::to_string(ranks) + " ranks: ";
    trying(about + "forward.");
    for (int rank = 0; rank < ranks; rank++)
        require_part(part_of(whole, rank, ranks), rank, ranks);
    const std::vector<Numbers> all = with_the_sum(
        ranks, outputs, "", "x is the same on all ranks already, and no sum is due in front of w1.",
        [&](int rank, const SumOverRanks& sum_over_ranks) {
            return part_forward(part_of(whole, rank, ranks), x, sum_over_ranks);
        });
    for (const Numbers& y : all)
        require_close(y, right_y(1), about + "y",
                      are_close(y, right_y(ranks))
                          ? "b2 is in it " + std::to_string(ranks) +
                                " times: every rank adds it before the sum."
                      : are_close(y, right_y(0)) ? "b2 is missing."
                                                 : "What does a rank bring? w2 relu(w1 x + b1).");
}

void check_backward(int ranks) {
    const std::string about = std::to_string(ranks) + " ranks: ";
    trying(about + "backward.");
    const auto all = with_the_sum(
        ranks, inputs,
        "These are dy, which every rank has already: where forward adds up, backward copies.", "",
        [&](int rank, const SumOverRanks& sum_over_ranks) {
            return part_backward(part_of(whole, rank, ranks), x, dy, sum_over_ranks);
        });
    for (int rank = 0; rank < ranks; rank++) {
        const auto& [dx, yours] = all[static_cast<std::size_t>(rank)];
        const std::string what = about + "on rank " + std::to_string(rank) + ", the gradient of ";
        const auto right_with = [&](bool has_relu) {
            return part_of(right_gradients(has_relu).parameters, rank, ranks);
        };
        const FeedForwardWeights right = right_with(true);
        const std::string relu = are_close(yours.b1, right_with(false).b1)
                                     ? "You go back as if there were no ReLU: where it has made a "
                                       "0, the gradient is 0."
                                     : "";
        require_close(yours.b2, right.b2, what + "b2", "It is dy: y = ... + b2.");
        require_close(yours.w2.values, right.w2.values, what + "w2", "dy times a hidden number.");
        require_close(yours.b1, right.b1, what + "b1", relu);
        require_close(yours.w1.values, right.w1.values, what + "w1", relu);
        require_close(dx, right_gradients(true).x, what + "x",
                      "Every rank has used all of x: the gradient is the sum over the ranks.");
    }
}

}  // namespace

std::vector<Task> tasks() {
    return {{"forward",
             [] {
                 for (const int ranks : {2, 1, 4})
                     check_forward(ranks);
             }},
            {"backward", [] {
                 for (const int ranks : {2, 1, 4})
                     check_backward(ranks);
             }}};
}

}  // namespace ddp::test
