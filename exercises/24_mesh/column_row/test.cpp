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

// All sizes differ, also from a part of `hidden`: a sum tells by its size what is added up.
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

// The results of one rank. `y` has b2 so many times.
struct OneRank {
    Numbers y;
    PartGradients gradients{Numbers(inputs), whole};
};
OneRank one_rank(double biases = 1) {
    OneRank right;
    auto& [w1, b1, w2, b2] = right.gradients.parameters;
    b2 = dy;
    for (const double bias : whole.b2)
        right.y.push_back(biases * bias);
    for (std::size_t h = 0; h < hidden; h++) {
        double before_relu = whole.b1[h];
        for (std::size_t i = 0; i < inputs; i++)
            before_relu += whole.w1.at(h, i) * x[i];
        b1[h] = 0;
        for (std::size_t o = 0; o < outputs; o++) {
            right.y[o] += whole.w2.at(o, h) * std::max(before_relu, 0.0);
            w2.at(o, h) = dy[o] * std::max(before_relu, 0.0);
            b1[h] += before_relu > 0 ? dy[o] * whole.w2.at(o, h) : 0;
        }
        for (std::size_t i = 0; i < inputs; i++) {
            w1.at(h, i) = b1[h] * x[i];
            right.gradients.x[i] += b1[h] * whole.w1.at(h, i);
        }
    }
    return right;
}

bool are_close(const Numbers& a, const Numbers& b) {
    return std::ranges::equal(a, b, [](double p, double q) { return std::abs(p - q) < 1e-9; });
}
void require_close(const Numbers& yours, const Numbers& right, const std::string& what,
                   const std::string& hint) {
    for (std::size_t i = 0; i < right.size(); i++)
        if (i >= yours.size() || !(std::abs(yours[i] - right[i]) < 1e-9))
            throw Wrong(what + ": number " + std::to_string(i) + " is " +
                        (i < yours.size() ? std::to_string(yours[i]) : "missing") +
                        ", and one rank finds " + std::to_string(right[i]) + ".\n" + hint);
}

// Calls `work` for the part of each rank. Its sum may have `size` numbers; for other sizes it says
// why not.
template <class Work>
auto with_the_sum(int ranks, std::size_t size, const Work& work) {
    return with_one_sum(ranks, size, [&](int rank, const SumOverRanks& sum_over_ranks) {
        return work(part_of(whole, rank, ranks), [&](Numbers& numbers) {
            if (numbers.size() == size)
                return sum_over_ranks(numbers);
            throw Wrong("With " + std::to_string(ranks) + " ranks you add up " +
                        std::to_string(numbers.size()) + " numbers over the ranks. " +
                        (numbers.size() == hidden / static_cast<std::size_t>(ranks)
                             ? "Hidden numbers? Each rank has others, and none of them is "
                               "incomplete: ReLU looks at one at a time."
                         : numbers.size() == inputs
                             ? "Is it x? Every rank has it already: no sum is due before w1."
                         : numbers.size() == outputs
                             ? "Is it dy? Every rank has it already: where forward adds up, "
                               "backward copies."
                             : "Gradients of weights? No other rank has a part of them."));
        });
    });
}

void check_forward() {
    for (const int ranks : {2, 1, 4}) {
        const std::string about = std::to_string(ranks) + " ranks: ";
        trying(about + "forward.");
        if (part_of(whole, 0, ranks).w2.outputs != outputs)
            throw Wrong(about +
                        "rank 0 has a part of the outputs. Cut w2 by its inputs: cut by its "
                        "outputs, it needs hidden numbers that other ranks have.");
        for (const Numbers& y : with_the_sum(ranks, outputs, [&](const auto&own, const auto&sum) {
                 return part_forward(own, x, sum);
             }))
            require_close(y, one_rank().y, about + "y",
                          are_close(y, one_rank(ranks).y)
                              ? "b2 is in it " + std::to_string(ranks) +
                                    " times: every rank adds it before the sum."
                              : "A rank brings w2 relu(w1 x + b1) of its hidden numbers, the same "
                                "ones in w1, b1 and w2.");
    }
}

void check_backward() {
    for (const int ranks : {2, 1, 4}) {
        trying(std::to_string(ranks) + " ranks: backward.");
        const auto all = with_the_sum(ranks, inputs, [&](const auto& own, const auto& sum) {
            return part_backward(own, x, dy, sum);
        });
        for (int rank = 0; rank < ranks; rank++) {
            const auto& [dx, yours] = all[static_cast<std::size_t>(rank)];
            const std::string what = std::to_string(ranks) + " ranks: on rank " +
                                     std::to_string(rank) + ", the gradient of ";
            const PartGradients whole_gradients = one_rank().gradients;
            const auto right = part_of(whole_gradients.parameters, rank, ranks);
            require_close(yours.b2, right.b2, what + "b2", "It is dy: y = ... + b2.");
            require_close(yours.w2.values, right.w2.values, what + "w2",
                          "It is dy times the hidden numbers.");
            const std::string relu = "Where ReLU has made a 0, the gradient is 0.";
            require_close(yours.b1, right.b1, what + "b1", relu);
            require_close(yours.w1.values, right.w1.values, what + "w1", relu);
            require_close(dx, whole_gradients.x, what + "x",
                          "Every rank has used all of x: it is the sum over the ranks.");
        }
    }
}

}  // namespace

std::vector<Task> tasks() {
    return {{"forward", check_forward}, {"backward", check_backward}};
}

}  // namespace ddp::test
