// The exercise exact_metric: what all ranks say beside what is right for all samples.
#include "exercises/12_sampler/exact_metric.hpp"

#include <cmath>

#include "exercises/support/sums.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

std::string case_of(int samples, int world_size) {
    return std::to_string(samples) + " samples, " + std::to_string(world_size) + " ranks: ";
}
bool is_near(double yours, double right) {
    return std::abs(yours - right) < 1e-9;
}

// ---- Task weights

void check_weights_of(int samples, int world_size, const std::string& hint) {
    for (int rank = 0; rank < world_size; rank++) {
        const std::vector<double> yours = weights_of_padded(samples, rank, world_size);
        const std::string what =
            case_of(samples, world_size) + "rank " + std::to_string(rank) + " has ";
        const int indices =
            DistributedSampler(samples, rank, world_size, {.shuffle = false}).samples_per_rank();
        if (std::ssize(yours) != indices)
            throw Wrong(what + std::to_string(indices) + " indices, and you give it " +
                        std::to_string(yours.size()) + " weights: also padding has one.");
        for (int i = 0; i < indices; i++) {
            const int entry = rank + i * world_size;
            const double weight = yours[static_cast<std::size_t>(i)];
            if (weight != (entry < samples ? 1 : 0))
                throw Wrong(what + "entry " + std::to_string(entry) +
                            " of the padded order, and you give it the weight " +
                            std::to_string(weight).substr(0, 4) + ". " +
                            (weight != 0 && weight != 1 ? "A weight is 1, or 0 for padding."
                             : weight == 0 ? "Each sample counts the FIRST time it comes."
                                           : "It is padding: a sample that has come before.") +
                            hint);
        }
    }
}

void check_weights() {
    check_weights_of(10, 4, " (Two samples are there twice, to make four ranks even.)");
    check_weights_of(24, 2, " (Nothing is padded.)");
    check_weights_of(5, 4, " (Only one rank has an index of its own in the last round.)");
    check_weights_of(2, 7, " (Some of so few samples are there more than twice.)");
}

// ---- Task balanced_accuracy

struct Sample {
    int predicted, label;
};

// The last sample comes once more, as padding.
Answers answers_of(const std::vector<Sample>& samples, int rank, int world_size) {
    Answers mine;
    for (std::size_t i = 0; i <= samples.size() && !samples.empty(); i++)
        if (static_cast<int>(i) % world_size == rank) {
            const Sample& sample = samples[std::min(i, samples.size() - 1)];
            mine.predicted.push_back(sample.predicted);
            mine.label.push_back(sample.label);
            mine.weights.push_back(i < samples.size() ? 1 : 0);
        }
    return mine;
}

void check_metric(const std::vector<Sample>& samples, int world_size, double right,
                  const std::vector<std::pair<double, std::string>>& causes,
                  const std::string& hint) {
    const auto found = with_one_sum(world_size, 6, [&](int rank, const SumOverRanks& sum) {
        return balanced_accuracy(answers_of(samples, rank, world_size), 3, sum);
    });
    for (const double yours : found) {
        std::string words = hint;
        for (const auto& [wrong, cause] : causes)
            if (is_near(yours, wrong))
                words = cause;
        if (!is_near(yours, right))
            throw Wrong(case_of(static_cast<int>(samples.size()), world_size) + "you say " +
                        std::to_string(yours) + ", right is " + std::to_string(right) + ". " +
                        words);
    }
}

void check_balanced_accuracy() {
    // Of six cats five are known, of three dogs one, of the only car none.
    const std::vector<Sample> animals = {{0, 0}, {0, 0}, {1, 0}, {1, 1}, {0, 0},
                                         {0, 2}, {0, 0}, {2, 1}, {0, 0}, {0, 1}};
    const double right = (5.0 / 6 + 1.0 / 3 + 0) / 3;
    for (const int world_size : {1, 2, 3, 4, 12})
        check_metric(
            animals, world_size, right,
            {{6 / 10.0, "That is the plain accuracy, in which a rare class hardly counts."},
             {(5.0 / 6 + 1.0 / 3) / 2, "A class of which no answer is right has the recall 0."},
             {(5.0 / 7 + 1.0 / 2) / 3,
              "You divide by how often a class was PREDICTED (that is precision); recall divides "
              "by how often it occurs."},
             {(5.0 / 6 + 1.0 / 4 + 0) / 3, "Weigh both the correct answers and all answers."}},
            "The ranks have unequal numbers of each class: a mean of means is not the mean. Add up "
            "what can be added, and divide last.");
    check_metric({{0, 0}, {1, 1}, {1, 0}}, 2, 0.75, {},
                 "No car occurs, so this class has no part in the mean.");
    check_metric({}, 2, 0, {}, "No rank has any answer. (0 / 0 is NaN.)");
}

// ---- Task worst_padding

void check_worst_padding() {
    const std::string what = "11 samples, 4 ranks: you predict ";
    const double yours = worst_padding(11, 4);
    const std::pair<double, std::string> causes[] = {
        {0, "0: int divided by int drops the rest in C++."},
        {1 / 12.0,
         "1/12, the share of padded samples. The exact accuracy is not 0 if one is right."},
        {1 / 11.0, "1/11, the exact accuracy if one is right. The padded one is not 0."},
        {24 / 154.0,
         "what 3 padded samples do. You take the remainder for the padding; padding is "
         "what is missing to the next multiple."}};
    for (const auto& [wrong, words] : causes)
        if (is_near(yours, wrong))
            throw Wrong(what + words);
    if (!is_near(yours, 10 / 132.0))
        throw Wrong(what + std::to_string(yours) +
                    ". If just the one that comes twice is right, 2/12 seem to be, and 1/11 are.");
    if (!is_near(worst_padding(12, 4), 0))
        throw Wrong("12 samples, 4 ranks: nothing is padded, so p is 0 and not world_size.");
    if (!is_near(worst_padding(9, 8), 14 / 144.0))
        throw Wrong(
            "9 samples, 8 ranks: seven come twice. If just these are right, 14/16 seem to "
            "be, and 7/9 are.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"weights", check_weights},
            {"balanced_accuracy", check_balanced_accuracy},
            {"worst_padding", check_worst_padding}};
}

}  // namespace ddp::test
