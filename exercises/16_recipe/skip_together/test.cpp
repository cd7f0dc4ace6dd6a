// The exercise skip_together, rank after rank without threads: first each runs until it has brought
// its number, then each once more with the sum.
#include "exercises/16_recipe/skip_together.hpp"

#include <cmath>

#include "common/report/units.hpp"
#include "exercises/support/sums.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Gradients = std::vector<std::vector<float>>;  // by rank

void check_decision(const Gradients& gradients, bool right, const std::string& hint) {
    trying("may_step() is called. " + hint);
    const auto yours =
        with_one_sum(static_cast<int>(gradients.size()), 1, [&](int rank, const SumOverRanks& sum) {
            return int{may_step(gradients[static_cast<std::size_t>(rank)], sum)};
        });
    for (std::size_t rank = 0; rank < yours.size(); rank++)
        if ((yours[rank] != 0) != right)
            throw Wrong("Rank " + std::to_string(rank) + " says " + (right ? "no" : "yes") +
                        ", right is " + (right ? "yes" : "no") + ". " + hint);
}

void check_decide() {
    check_decision({{1, 2}, {0.5f, -1}, {0, 3}}, true, "All numbers are finite.");
    check_decision({{1, 2}, {INFINITY, 1}, {0, 3}}, false,
                   "Rank 1 has an infinity. What does your rank learn from the sum?");
    check_decision({{1, NAN}, {2, 1}}, false,
                   "Every comparison with NaN is false. std::isfinite() knows NaN, too.");
    check_decision({{1, 2}, {-INFINITY, 1}}, false, "Rank 1 has minus infinity.");
    check_decision({{INFINITY}, {-INFINITY}}, false,
                   "Both have one. Bring a number that says so, and not the gradient's.");
    check_decision({{}, {3}}, true, "A rank has no numbers. It still takes part.");
    check_decision({{NAN}}, false, "One rank has a NaN.");
}

// `steps` has a + for each step and a - for each that is left out.
void check_scales(int interval, const std::string& steps, const std::vector<double>& right) {
    Scale scale{32768, 0};
    for (std::size_t i = 0; i < steps.size(); i++) {
        const Scale before = scale;
        scale = next_scale(before, steps[i] == '+', interval);
        const std::string hint =
            steps[i] == '-'               ? "A step was left out: half of it."
            : scale.value == before.value ? "That was the last one of a row: it doubles."
            : steps.find('-') < i
                ? "In a row: a step that is left out ends the row, and the count begins anew."
                : "After a change the count begins anew.";
        if (scale.value != right[i])
            throw Wrong("Interval " + std::to_string(interval) + ", from 32768, steps " +
                        steps.substr(0, i + 1) + " (- is one that is left out): you say " +
                        format_fixed(scale.value, 0) + ", right is " + format_fixed(right[i], 0) +
                        ". " + hint);
    }
}

void check_rescale() {
    check_scales(2, "++", {32768, 65536});
    check_scales(2, "+-", {32768, 16384});
    check_scales(3, "++++++", {32768, 32768, 65536, 65536, 65536, 131072});
    check_scales(3, "++-+++", {32768, 32768, 16384, 16384, 16384, 32768});
}

// Two ranks, whose gradients without a scale these are; their mean is (3, 2).
const Gradients own_gradients{{2, 0}, {4, 4}};

// Overflows as float16 does: above 65504 it is infinite.
float scaled(float number, double scale) {
    const double product = static_cast<double>(number) * scale;
    return static_cast<float>(product <= 65504 ? product : INFINITY);
}

// Returns what is wrong with the gradient of a step, if the clipped (3, 2) is right, or "".
std::string wrong_gradient(const std::vector<float>& yours, const std::vector<float>& own,
                           double scale, double max_norm) {
    const double clip = std::min(1.0, max_norm / std::sqrt(13.0));
    const auto x = static_cast<double>(yours[0]), y = static_cast<double>(yours[1]);
    const double times = x / (3 * clip);
    const auto is = [&](double factor) { return std::abs(times - factor) < 1e-3 * factor; };
    if (yours[0] * own[1] == yours[1] * own[0])
        return "That is the rank's own gradient: who averages?";
    if (is(1) && std::abs(x * 2 - y * 3) < 1e-3 * x)
        return "";
    if (is(scale))
        return "It is still scaled.";
    if (is(0.5) || is(2))
        return "Unscale by the scale that backward had: is yours the next one's?";
    if (times < 1 && clip < 1)
        return "It is shorter than max_norm. Clip what has been averaged and unscaled.";
    return "Average, divide by the scale, then clip: times max_norm / norm if the norm is larger.";
}

// `steps` says which are taken.
void check_steps(double value, double max_norm, const std::vector<bool>& steps) {
    Scale scale{value, 0};
    for (const bool is_taken : steps) {
        const std::string what = "Scale " + format_fixed(scale.value, 0) + ", max_norm " +
                                 format_fixed(max_norm, 0) + ": ";
        trying(what + "train_step() is called.");
        const auto next = with_one_sum(2, 1, [&](int rank, const SumOverRanks& sum) {
            const std::vector<float>& own = own_gradients[static_cast<std::size_t>(rank)];
            Scale mine = scale;
            std::vector<float> taken;  // empty if none is
            const Training training{
                sum,
                [&](std::vector<float>& gradient) {  // scaled or not
                    gradient = {3 * gradient[0] / own[0], 2 * gradient[0] / own[0]};
                },
                [&](double by) {
                    return std::vector{scaled(own[0], by), scaled(own[1], by)};
                },
                [&](const std::vector<float>& gradient) { taken = gradient; }};
            train_step(training, mine, 2, max_norm);
            if (taken.empty() == is_taken)
                throw Wrong(what + (is_taken ? "all numbers are finite, and you take no step."
                                             : "rank 1's overflow, and you still step."));
            const std::string wrong =
                is_taken ? wrong_gradient(taken, own, scale.value, max_norm) : "";
            if (!wrong.empty())
                throw Wrong(what + "rank " + std::to_string(rank) + " steps with (" +
                            format_fixed(taken[0], 3) + ", " + format_fixed(taken[1], 3) + "). " +
                            wrong);
            return mine;
        });
        scale = next_scale(scale, is_taken, 2);
        for (const Scale& yours : next)
            if (yours.value != scale.value || yours.good_steps != scale.good_steps)
                throw Wrong(what + "the next scale is " + format_fixed(scale.value, 0) +
                            ", yours is " + format_fixed(yours.value, 0) +
                            ". (It counts a step, and halves if none was taken.)");
    }
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
