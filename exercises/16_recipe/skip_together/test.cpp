// The exercise skip_together, rank after rank without threads: first each runs until it has brought
// its number, then each once more with the sum.
#include "exercises/16_recipe/skip_together.hpp"

#include <cmath>
#include <cstdio>

#include "exercises/support/sums.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Gradients = std::vector<std::vector<float>>;  // by rank

std::string text(double number) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.6g", number);
    return digits;
}
std::string text(const std::vector<float>& numbers) {
    std::string all;
    for (const float number : numbers)
        all += (all.empty() ? "(" : ", ") + text(static_cast<double>(number));
    return all.empty() ? "()" : all + ")";
}

// ---- Task decide

void check_decision(const Gradients& gradients, bool right, const std::string& hint) {
    std::string what = "The gradients of the ranks: ";
    for (const std::vector<float>& gradient : gradients)
        what += (&gradient == &gradients[0] ? "" : ", ") + text(gradient);
    trying(what + ". may_step() is called.");
    const int ranks = static_cast<int>(gradients.size());
    std::vector<int> yours;  // no std::vector<bool>
    try {
        yours = with_one_sum(ranks, 1, [&](int rank, const SumOverRanks& sum) {
            return int{may_step(gradients[static_cast<std::size_t>(rank)], sum)};
        });
    } catch (const Wrong& wrong) {
        throw Wrong(what + ". " + wrong.what());
    }
    for (std::size_t rank = 0; rank < yours.size(); rank++)
        if ((yours[rank] != 0) != right)
            throw Wrong(what + ": rank " + std::to_string(rank) + " says " +
                        (right ? "no" : "yes") + ", right is " + (right ? "yes" : "no") + ". " +
                        hint);
    held();
}

void check_decide() {
    const float nan = std::nanf("");
    check_decision({{1, 2}, {0.5f, -1}, {0, 3}}, true, "The case: all of them are finite.");
    check_decision({{1, 2}, {INFINITY, 1}, {0, 3}}, false,
                   "Rank 1 has an infinity, and so no rank steps. What does your rank learn from "
                   "the sum?");
    check_decision({{1, nan}, {2, 1}}, false,
                   "Every comparison with NaN is false. std::isfinite() knows NaN, too.");
    check_decision({{1, 2}, {-INFINITY, 1}}, false, "The case: minus infinity.");
    check_decision({{INFINITY}, {-INFINITY}}, false,
                   "Both have one. Bring a number that says so, and not the gradient's.");
    check_decision({{}, {3}}, true, "The case: a rank has no numbers. It still takes part.");
    check_decision({{3e38f, 3e38f}, {3e38f, -3e38f}}, true,
                   "The case: large numbers, which are not infinite.");
    check_decision({{nan}}, false, "The case: one rank.");
}

// ---- Task rescale

// `steps` has a + for each step and a - for each that is left out.
void check_scales(int interval, const std::string& steps, const std::vector<double>& right) {
    Scale scale{32768, 0};
    for (std::size_t i = 0; i < steps.size(); i++) {
        const Scale before = scale;
        scale = next_scale(before, steps[i] == '+', interval);
        if (scale.value == right[i])
            continue;
        const std::string hint =
            steps[i] == '-'               ? "A step was left out: half of it."
            : scale.value == before.value ? "That was the last one of a row: it doubles."
            : steps.find('-') < i
                ? "In a row: a step that is left out ends the row, and the count begins anew."
                : "After a change the count begins anew.";
        throw Wrong("Interval " + std::to_string(interval) + ", from 32768, steps " +
                    steps.substr(0, i + 1) + " (- is one that is left out): you say " +
                    text(scale.value) + ", right is " + text(right[i]) + ". " + hint);
    }
    held();
}

void check_rescale() {
    check_scales(2, "++", {32768, 65536});
    check_scales(2, "+-", {32768, 16384});
    check_scales(3, "++++++", {32768, 32768, 65536, 65536, 65536, 131072});
    check_scales(3, "++-+++", {32768, 32768, 16384, 16384, 16384, 32768});
}

// ---- Task whole_step

// Overflows as float16 does: above 65504 it is infinite.
std::vector<float> scaled(const std::vector<float>& gradient, double scale) {
    std::vector<float> result;
    for (const float number : gradient) {
        const double product = static_cast<double>(number) * scale;
        result.push_back(
            static_cast<float>(std::abs(product) <= 65504 ? product : product * INFINITY));
    }
    return result;
}
double norm(const std::vector<float>& numbers) {
    double squares = 0;
    for (const float number : numbers)
        squares += static_cast<double>(number) * static_cast<double>(number);
    return std::sqrt(squares);
}
bool are_near(const std::vector<float>& yours, const std::vector<float>& right, double factor) {
    for (std::size_t i = 0; i < right.size(); i++)
        if (yours.size() != right.size() ||
            !(std::abs(static_cast<double>(yours[i]) - static_cast<double>(right[i]) * factor) <=
              1e-3 * factor * norm(right)))
            return false;
    return true;
}

// Returns what a wrong gradient tells.
std::string cause_of(const std::vector<float>& yours, const std::vector<float>& own,
                     const std::vector<float>& right, double scale, double clip) {
    if (are_near(yours, own, norm(yours) / norm(own)))
        return "That is the rank's own gradient: who averages?";
    if (norm(yours) < 0.9 * norm(right) && clip < 1)
        return "It is shorter than max_norm, so it was clipped too early. Clip what has been "
               "averaged and unscaled.";
    if (are_near(yours, right, scale))
        return "It is still scaled.";
    if (are_near(yours, right, 0.5) || are_near(yours, right, 2))
        return "Unscale by the scale that backward had: is yours the next one's?";
    return "Average, divide by the scale, then clip: times max_norm / norm if the norm is larger.";
}

// Goes through steps on two ranks, whose gradients without a scale these are.
void check_steps(double value, double max_norm, const std::vector<bool>& steps) {
    const Gradients gradients{{2, 0}, {4, 4}};
    const std::vector<float> mean{3, 2};
    const double clip = std::min(1.0, max_norm / norm(mean));
    const std::vector<float> right{static_cast<float>(3 * clip), static_cast<float>(2 * clip)};
    Scale scale{value, 0};
    for (const bool is_taken : steps) {
        const std::string what = "Two ranks have the gradients (2, 0) and (4, 4); scale " +
                                 text(scale.value) + ", max_norm " + text(max_norm) + ": ";
        trying(what + "train_step() is called.");
        const auto next = with_one_sum(2, 1, [&](int rank, const SumOverRanks& sum) {
            const std::vector<float>& own = gradients[static_cast<std::size_t>(rank)];
            Scale mine = scale;
            bool has_stepped = false;
            const Training training{
                sum,
                [&](std::vector<float>& gradient) {  // scaled or not
                    const float scaled_by = static_cast<float>(scale.value);
                    const float factor =
                        std::isfinite(gradient[0]) ? gradient[0] / own[0] / scaled_by : 1;
                    const std::vector<float> a = scaled(gradients[0], scale.value),
                                             b = scaled(gradients[1], scale.value);
                    gradient = {(a[0] + b[0]) / 2 * factor, (a[1] + b[1]) / 2 * factor};
                },
                [&](double by) { return scaled(own, by); },
                [&](const std::vector<float>& gradient) {
                    has_stepped = true;
                    if (!are_near(gradient, right, 1))
                        throw Wrong(what + "rank " + std::to_string(rank) + " steps with " +
                                    text(gradient) + ", right is " + text(right) + ". " +
                                    cause_of(gradient, own, right, scale.value, clip));
                }};
            train_step(training, mine, 2, max_norm);
            if (has_stepped != is_taken)
                throw Wrong(what + (is_taken ? "all numbers are finite, and you take no step."
                                             : "rank 1's overflow, and you still step."));
            return mine;
        });
        scale = next_scale(scale, is_taken, 2);
        for (const Scale& yours : next)
            if (yours.value != scale.value || yours.good_steps != scale.good_steps)
                throw Wrong(what + "the next scale is " + text(scale.value) + ", yours is " +
                            text(yours.value) +
                            (is_taken
                                 ? ". A step has been taken: count it."
                                 : ". If it stays, this and every later step overflows, too."));
    }
    held();
}

void check_whole_step() {
    check_steps(4, 1, {true, true, true});
    check_steps(1024, 1e9, {true, true, true});
    check_steps(32768, 1, {false, false, true, true, false, true});
}

}  // namespace

std::vector<Task> tasks() {
    return {{"decide", check_decide}, {"rescale", check_rescale}, {"whole_step", check_whole_step}};
}

}  // namespace ddp::test
