// The exercise exact_metric: what all ranks say beside what one rank with all samples says, and a
// prediction beside the worst of all cases there are.
#include "exercises/12_sampler/exact_metric.hpp"

#include <algorithm>
#include <cmath>

#include "12_sampler/sampler.hpp"
#include "exercises/support/sums.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

std::string case_of(int samples, int world_size) {
    return std::to_string(samples) + " samples, " + std::to_string(world_size) + " ranks: ";
}

// ---- Task weights

void check_weights_of(int samples, int world_size, const std::string& hint) {
    std::vector<double> counted(static_cast<std::size_t>(samples));
    for (int rank = 0; rank < world_size; rank++) {
        const std::vector<int> indices =
            DistributedSampler(samples, rank, world_size, {.shuffle = false}).indices();
        const std::vector<double> weights = weights_of_padded(samples, rank, world_size);
        if (weights.size() != indices.size())
            throw Wrong(case_of(samples, world_size) + "rank " + std::to_string(rank) + " has " +
                        std::to_string(indices.size()) + " indices, and you give it " +
                        std::to_string(weights.size()) +
                        " weights. Give each index one, also padding.");
        for (std::size_t i = 0; i < indices.size(); i++)
            if (weights[i] != 0 && weights[i] != 1)
                throw Wrong(case_of(samples, world_size) + "rank " + std::to_string(rank) +
                            " gives its index number " + std::to_string(i) + " the weight " +
                            std::to_string(weights[i]).substr(0, 4) +
                            ": a weight is 1, or 0 for padding.");
        for (std::size_t i = 0; i < indices.size(); i++)
            counted[static_cast<std::size_t>(indices[i])] += weights[i];
    }
    for (int i = 0; i < samples; i++)
        if (const double count = counted[static_cast<std::size_t>(i)]; count != 1)
            throw Wrong(case_of(samples, world_size) + "sample " + std::to_string(i) + " counts " +
                        std::to_string(count).substr(0, 4) + " times.\n" + hint);
    // The first time counts: entries below `samples` of the padded order.
    for (int rank = 0; rank < world_size; rank++) {
        const std::vector<double> weights = weights_of_padded(samples, rank, world_size);
        for (std::size_t i = 0; i < weights.size(); i++)
            if (const bool counts = rank + static_cast<int>(i) * world_size < samples;
                (weights[i] == 1) != counts)
                throw Wrong(case_of(samples, world_size) + "index number " + std::to_string(i) +
                            " of rank " + std::to_string(rank) + " is entry " +
                            std::to_string(rank + static_cast<int>(i) * world_size) +
                            " of the padded order, and you give it " +
                            std::to_string(static_cast<int>(weights[i])) +
                            ". Each sample counts once, but not the FIRST time it comes.");
    }
}

void check_weights() {
    check_weights_of(10, 4, "The case: two samples are there twice, to make four ranks even.");
    check_weights_of(24, 2, "The case: nothing is padded.");
    check_weights_of(5, 4, "The case: only one rank has an index of its own in the last round.");
    check_weights_of(2, 7, "The case: some of so few samples are there more than twice.");
}

// ---- Task balanced_accuracy

Answers answers_of(const std::vector<int>& predicted, const std::vector<int>& label, int rank,
                   int world_size, bool is_padded) {
    const int samples = static_cast<int>(label.size());
    Answers mine;
    for (int i = rank; i < samples || (is_padded && i - rank < samples); i += world_size) {
        const auto sample = static_cast<std::size_t>(i % samples);
        mine.predicted.push_back(predicted[sample]);
        mine.label.push_back(label[sample]);
        mine.weights.push_back(i < samples ? 1 : 0);
    }
    return mine;
}

// Returns what a wrong metric tells, or "".
std::string cause_of(double yours, const std::vector<int>& predicted,
                     const std::vector<int>& label) {
    std::vector<double> hits(3), of_label(3), of_predicted(3);
    double all = 0, classes = 0, precision = 0, recalls = 0, with_hits = 0;
    for (std::size_t i = 0; i < label.size(); i++) {
        const auto l = static_cast<std::size_t>(label[i]);
        hits[l] += predicted[i] == label[i] ? 1 : 0;
        of_label[l]++;
        of_predicted[static_cast<std::size_t>(predicted[i])]++;
        all += predicted[i] == label[i] ? 1 : 0;
    }
    for (std::size_t c = 0; c < 3; c++) {
        classes += of_label[c] > 0 ? 1 : 0;
        precision += of_predicted[c] > 0 ? hits[c] / of_predicted[c] : 0;
        recalls += of_label[c] > 0 ? hits[c] / of_label[c] : 0;
        with_hits += hits[c] > 0 ? 1 : 0;
    }
    const auto is = [&](double wrong) { return std::abs(yours - wrong) < 1e-9; };
    if (std::isnan(yours))
        return "That is 0 / 0.\n";
    if (!label.empty() && is(all / static_cast<double>(label.size())))
        return "That is the plain accuracy, in which a rare class hardly counts.\n";
    if (with_hits < classes && is(recalls / with_hits))
        return "You leave out a class of which no answer is right. It occurs, and its recall is "
               "0.\n";
    if (is(precision / classes))
        return "You divide by how often a class was PREDICTED (that is precision); recall divides "
               "by how often it occurs.\n";
    return "";
}

void check_metric(const std::vector<int>& predicted, const std::vector<int>& label, int world_size,
                  bool is_padded, double right, const std::string& hint) {
    constexpr int classes = 3;
    const std::vector<double> found =
        with_one_sum(world_size, 2 * classes, [&](int rank, const SumOverRanks& sum_over_ranks) {
            return balanced_accuracy(answers_of(predicted, label, rank, world_size, is_padded),
                                     classes, sum_over_ranks);
        });
    for (int rank = 0; rank < world_size; rank++)
        if (!(std::abs(found[static_cast<std::size_t>(rank)] - right) < 1e-12))
            throw Wrong(case_of(static_cast<int>(label.size()), world_size) + "rank " +
                        std::to_string(rank) + " says " +
                        std::to_string(found[static_cast<std::size_t>(rank)]) + ", right is " +
                        std::to_string(right) + ".\n" +
                        cause_of(found[static_cast<std::size_t>(rank)], predicted, label) + hint);
}

void check_balanced_accuracy() {
    // Of six cats five are known, of three dogs one, of the only car none.
    const std::vector<int> label = {0, 0, 0, 1, 0, 2, 0, 1, 0, 1};
    const std::vector<int> predicted = {0, 0, 1, 1, 0, 0, 0, 2, 0, 0};
    const double right = (5.0 / 6 + 1.0 / 3 + 0) / 3;
    check_metric(
        predicted, label, 1, false, right,
        "The case: one rank. Of each class take the share that was classified correctly, then the "
        "mean over the classes.");
    for (const int world_size : {2, 3, 4})
        check_metric(predicted, label, world_size, false, right,
                     "The ranks have unequal numbers of each class: a mean of means is not the "
                     "mean. Add up what can be added, and divide last.");
    for (const int world_size : {3, 4})
        check_metric(predicted, label, world_size, true, right,
                     "Some samples are there twice, once with the weight 0. Weigh both the correct "
                     "answers and all answers.");
    check_metric(predicted, label, 12, false, right, "The case: two ranks have no answer at all.");
    check_metric({0, 1, 1}, {0, 1, 0}, 2, false, 0.75,
                 "The case: no car occurs, so this class has no part in the mean.");
    check_metric({}, {}, 2, false, 0, "The case: no rank has any answer.");
}

// ---- Task worst_padding

// By trying which samples are right, in all ways there are.
double measured_worst(int samples, int world_size) {
    std::vector<int> all;
    for (int rank = 0; rank < world_size; rank++)
        std::ranges::copy(
            DistributedSampler(samples, rank, world_size, {.shuffle = false}).indices(),
            std::back_inserter(all));
    double worst = 0;
    for (unsigned int right = 0; right < 1u << samples; right++) {
        const auto hits = std::ranges::count_if(all, [&](int i) { return (right >> i & 1) != 0; });
        int exact = 0;
        for (int i = 0; i < samples; i++)
            exact += (right >> i & 1) != 0 ? 1 : 0;
        worst =
            std::max(worst, std::abs(static_cast<double>(hits) / static_cast<double>(all.size()) -
                                     static_cast<double>(exact) / samples));
    }
    return worst;
}

// Returns what a wrong prediction tells, or "".
std::string cause_of_worst(double yours, double n, double world_size) {
    const double rest = std::fmod(n, world_size), p = rest == 0 ? 0 : world_size - rest;
    const auto is = [&](double wrong) { return std::abs(yours - wrong) < 1e-9; };
    if (rest == 0)
        return is(world_size * (n - world_size) / (n * (n + world_size)))
                   ? "The number of ranks divides the samples here, so p is 0 and not world_size.\n"
                   : "";
    if (is(rest * (n - rest) / (n * (n + rest))) || is(rest / (n + rest)))
        return "You take the remainder for the padding; padding is what is missing to the next "
               "multiple.\n";
    if (is(p / (n + p)))
        return "That is the share of padded samples, not a distance between two accuracies.\n";
    if (is(p / n))
        return "That is the exact accuracy if the padded samples are right. The padded one is not "
               "0.\n";
    if (yours == 0)
        return "Yours is 0: int divided by int drops the rest in C++.\n";
    if (is(p * (n - p) / (n * n)))
        return "The padded accuracy is divided by n + p, not by n.\n";
    return "";
}

void check_worst(int samples, int world_size, const std::string& hint) {
    const double predicted = worst_padding(samples, world_size);
    const double measured = measured_worst(samples, world_size);
    if (!(std::abs(predicted - measured) < 1e-9))
        throw Wrong(case_of(samples, world_size) + "you predict " + std::to_string(predicted) +
                    "; of all " + std::to_string(1u << samples) +
                    " ways to be right and wrong, the worst is off by " + std::to_string(measured) +
                    ".\n" + cause_of_worst(predicted, samples, world_size) + hint);
}

void check_worst_padding() {
    check_worst(12, 4, "The case: nothing is padded.");
    check_worst(
        10, 4,
        "Two samples are there twice. The exact accuracy is not 0 either if they are right.");
    check_worst(9, 8, "The case: seven of nine samples are there twice.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"weights", check_weights},
            {"balanced_accuracy", check_balanced_accuracy},
            {"worst_padding", check_worst_padding}};
}

}  // namespace ddp::test
