// The exercise sync_backward, beside differences: every input is moved a little, and the
// loss of all ranks is computed anew.
#include "exercises/18_sync_batch_norm/sync_backward.hpp"

#include <cmath>
#include <string>

#include "exercises/support/sums.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

struct Inputs {
    bool is_batch_norm;
    double weight = 1.5, bias = 0.25;
    std::vector<Normalised> ranks;
};

// Sets the statistics of all ranks' values. Returns the sum of dy * y: of rank `only`, or
// of all ranks if it is -1.
double loss_of(Inputs& inputs, int only) {
    double count = 0, sum = 0, squares = 0, loss = 0;
    for (const Normalised& rank : inputs.ranks)
        for (const double x : rank.x) {
            count++;
            sum += x;
            squares += x * x;
        }
    const double mean = inputs.is_batch_norm ? sum / count : 0;
    const double inverse_std = 1 / std::sqrt(squares / count - mean * mean + 1e-5);
    for (std::size_t r = 0; r < inputs.ranks.size(); r++) {
        Normalised& rank = inputs.ranks[r];
        rank.mean = mean;
        rank.inverse_std = inverse_std;
        rank.weight = inputs.weight;
        const bool is_asked = only < 0 || only == static_cast<int>(r);
        for (std::size_t i = 0; i < rank.x.size() && is_asked; i++)
            loss += rank.dy[i] * (rank.weight * (rank.x[i] - mean) * inverse_std + inputs.bias);
    }
    return loss;
}

// Returns how fast that loss grows with `input`, one of the `inputs`.
double slope(Inputs& inputs, double& input, int only = -1) {
    constexpr double step = 1e-5;
    const double before = input;
    input = before + step;
    const double more = loss_of(inputs, only);
    input = before - step;
    const double less = loss_of(inputs, only);
    input = before;
    return (more - less) / (2 * step);
}

bool is_near(double yours, double right) {
    return std::abs(yours - right) <= 1e-6 * (1 + std::abs(right));
}

void require_near(double yours, double right, const std::string& what, const std::string& hint) {
    if (!is_near(yours, right))
        throw Wrong(what + ": you say " + std::to_string(yours) +
                    ", and moving it a little shows " + std::to_string(right) + ".\n" + hint);
}

struct Sums {
    double dy, dy_x, count;  // of dy, and of dy times the normalised x
};

// Returns what a wrong gradient of x tells, without its factor weight * inverse_std.
std::string cause_of(double yours, double x, double dy, const Sums& all, const Sums& own,
                     bool has_mean) {
    const double mean = has_mean ? 1 : 0;
    const std::pair<double, const char*> wrong_formulas[] = {
        {dy - (mean * own.dy + x * own.dy_x) / own.count,
         "The sums and the count are this rank's own; forward took all ranks'.\n"},
        {dy - (mean * all.dy + x * all.dy_x) / own.count,
         "The sums are over all ranks, and the count is this rank's own.\n"},
        {dy - mean * all.dy / all.count, "The way through the variance, or the rms, is missing.\n"},
        {dy - x * all.dy_x / all.count, "The way through the mean is missing.\n"},
        {dy - (all.dy + x * all.dy_x) / all.count,
         "You subtract the mean of dy, as batch normalisation does. Forward subtracts "
         "no mean here, so there is no way through it.\n"}};
    for (const auto& [wrong, words] : wrong_formulas)
        if (is_near(yours, wrong))
            return words;
    return "";
}

void check_gradients(bool is_batch_norm, const std::vector<int>& counts, const std::string& hint) {
    Inputs inputs{.is_batch_norm = is_batch_norm, .ranks = {}};
    std::string about;
    double count = 0;
    for (const int own : counts) {
        about += (about.empty() ? "Ranks with " : ", ") + std::to_string(own);
        inputs.ranks.emplace_back();
        for (int i = 0; i < own; i++, count++) {
            inputs.ranks.back().x.push_back(std::sin(1.7 * (i + 1)) + 0.1 * count);
            inputs.ranks.back().dy.push_back(std::sin(2.9 * (i + 1)) + 0.1 * count);
        }
    }
    loss_of(inputs, -1);
    const std::vector<Normalised> forward = inputs.ranks;
    const auto yours = with_one_sum(
        static_cast<int>(counts.size()), is_batch_norm ? 3 : 2, [&](int rank, const auto& sum) {
            const Normalised& own = forward[static_cast<std::size_t>(rank)];
            return is_batch_norm ? batch_norm_backward(own, sum) : rms_norm_backward(own, sum);
        });
    const Sums all{slope(inputs, inputs.bias), slope(inputs, inputs.weight), count};
    for (std::size_t r = 0; r < counts.size(); r++) {
        const int rank = static_cast<int>(r);
        const Sums own{slope(inputs, inputs.bias, rank), slope(inputs, inputs.weight, rank),
                       static_cast<double>(counts[r])};
        const auto& [x, dy, mean, inverse_std, weight] = forward[r];
        const std::string of_rank = about + ", rank " + std::to_string(r) + ": gradient of ";
        if (yours[r].x.size() != x.size())
            throw Wrong(of_rank + "x has not one element per value.");
        for (std::size_t i = 0; i < x.size(); i++)
            require_near(yours[r].x[i], slope(inputs, inputs.ranks[r].x[i]),
                         of_rank + "x number " + std::to_string(i),
                         cause_of(yours[r].x[i] / (weight * inverse_std),
                                  (x[i] - mean) * inverse_std, dy[i], all, own, is_batch_norm) +
                             hint);
        const std::string own_words = "It's the rank's own: DDP averages it.";
        require_near(yours[r].weight, own.dy_x, of_rank + "weight", own_words);
        require_near(yours[r].bias, is_batch_norm ? own.dy : 0, of_rank + "bias",
                     is_batch_norm ? own_words : "RMS normalisation adds no bias: 0.");
    }
}

void check_batch_norm() {
    check_gradients(true, {6}, "An x reaches the loss in three ways.");
    check_gradients(true, {5, 5}, "An x moves the outputs of the other rank, too.");
    check_gradients(true, {3, 7, 0, 1, 4}, "The ranks have different numbers of values.");
}

void check_rms_norm() {
    check_gradients(false, {6}, "An x reaches the loss directly and through the rms.");
    check_gradients(false, {3, 7, 0, 1, 4}, "An x moves the other ranks' outputs, too.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"batch_norm", check_batch_norm}, {"rms_norm", check_rms_norm}};
}

}  // namespace ddp::test
