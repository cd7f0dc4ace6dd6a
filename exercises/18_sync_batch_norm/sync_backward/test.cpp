// The exercise sync_backward, beside differences: every input is moved a little, and the loss of
// all ranks is computed anew.
#include "exercises/18_sync_batch_norm/sync_backward.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "exercises/support/sums.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr double eps = 1e-5, weight = 1.5, bias = 0.25;

using ByRank = std::vector<std::vector<double>>;

enum class Kind { batch_norm, rms_norm };

struct Moments {
    double mean, inverse_std;
};

// Of all ranks' values together.
Moments moments_of(Kind kind, const ByRank& x) {
    double count = 0, sum = 0, squares = 0;
    for (const auto& values : x)
        for (const double value : values) {
            count++;
            sum += value;
        }
    const double mean = kind == Kind::batch_norm ? sum / count : 0;
    for (const auto& values : x)
        for (const double value : values)
            squares += (value - mean) * (value - mean);
    return {mean, 1 / std::sqrt(squares / count + eps)};
}

// The sum of all ranks' losses, or of rank `only`'s: each is the sum of dy * y.
double loss_of(Kind kind, const ByRank& x, const ByRank& dy, double w, double b, int only = -1) {
    const Moments moments = moments_of(kind, x);
    double loss = 0;
    for (std::size_t r = 0; r < x.size(); r++)
        for (std::size_t i = 0; i < x[r].size() && (only < 0 || only == static_cast<int>(r)); i++)
            loss += dy[r][i] * (w * (x[r][i] - moments.mean) * moments.inverse_std + b);
    return loss;
}

// Values and output gradients that tell rank and index, `counts` of them on the ranks.
ByRank made(const std::vector<int>& counts, double seed) {
    ByRank all;
    for (std::size_t r = 0; r < counts.size(); r++) {
        all.emplace_back();
        for (int i = 0; i < counts[r]; i++)
            all[r].push_back(std::sin(seed * (1 + i)) + 0.5 * static_cast<double>(r) + 0.1 * i);
    }
    return all;
}

void require_near(double yours, double right, const std::string& what, const std::string& hint) {
    if (!(std::abs(yours - right) <= 1e-6 * (1 + std::abs(right))))
        throw Wrong(what + ": you say " + std::to_string(yours) +
                    ", and moving it a little shows " + std::to_string(right) + ".\n" + hint);
}

// ---- What a wrong gradient tells

// The sums of backward: over all ranks' values, or over one rank's.
struct Sums {
    double dy = 0, dy_x = 0, count = 0;
};
Sums sums_of(const ByRank& x, const ByRank& dy, const Moments& moments, int only = -1) {
    Sums sums;
    for (std::size_t r = 0; r < x.size(); r++)
        for (std::size_t i = 0; i < x[r].size() && (only < 0 || only == static_cast<int>(r)); i++) {
            sums.dy += dy[r][i];
            sums.dy_x += dy[r][i] * (x[r][i] - moments.mean) * moments.inverse_std;
            sums.count++;
        }
    return sums;
}

// One gradient of x, by what its formula may use.
struct Place {
    double x, dy;  // normalised x
    Sums all, own;
    double factor;  // weight * inverse_std
};
struct WrongFormula {
    const char* words;
    double (*gradient)(const Place&);
};
const WrongFormula wrong_batch_norm[] = {
    {"You divide by n - 1; forward has divided the variance by n.",
     [](const Place& p) {
         return p.factor * (p.dy - (p.all.dy + p.x * p.all.dy_x) / (p.all.count - 1));
     }},
    {"Subtract the ways through the mean and the variance: you add them.",
     [](const Place& p) {
         return p.factor * (p.dy + (p.all.dy + p.x * p.all.dy_x) / p.all.count);
     }},
    {"The sums and the count are this rank's own; forward took the statistics of all ranks.",
     [](const Place& p) {
         return p.factor * (p.dy - (p.own.dy + p.x * p.own.dy_x) / p.own.count);
     }},
    {"The sums are over all ranks, and the count is this rank's own.",
     [](const Place& p) {
         return p.factor * (p.dy - (p.all.dy + p.x * p.all.dy_x) / p.own.count);
     }},
    {"The way through the variance is missing: x' times the sum of dy x'.",
     [](const Place& p) { return p.factor * (p.dy - p.all.dy / p.all.count); }},
    {"The way through the mean is missing: the sum of dy.",
     [](const Place& p) { return p.factor * (p.dy - p.x * p.all.dy_x / p.all.count); }},
    {"The ways through the mean and the variance are missing.",
     [](const Place& p) { return p.factor * p.dy; }},
    {"The weight is missing: y is weight times x', so dx has that factor, too.",
     [](const Place& p) {
         return p.factor / weight * (p.dy - (p.all.dy + p.x * p.all.dy_x) / p.all.count);
     }}};
const WrongFormula wrong_rms_norm[] = {
    {"Subtract the second term: you add it.",
     [](const Place& p) { return p.factor * (p.dy + p.x * p.all.dy_x / p.all.count); }},
    {"You subtract the mean of dy, as batch normalisation does. Here forward subtracts no mean, so "
     "there is no way through it.",
     [](const Place& p) {
         return p.factor * (p.dy - (p.all.dy + p.x * p.all.dy_x) / p.all.count);
     }},
    {"The sum and the count are this rank's own.",
     [](const Place& p) { return p.factor * (p.dy - p.x * p.own.dy_x / p.own.count); }},
    {"The sum is over all ranks, and the count is this rank's own.",
     [](const Place& p) { return p.factor * (p.dy - p.x * p.all.dy_x / p.own.count); }},
    {"The way through the rms is missing.", [](const Place& p) { return p.factor * p.dy; }},
    {"The weight is missing: y is weight times x / rms, so dx has that factor, too.",
     [](const Place& p) { return p.factor / weight * (p.dy - p.x * p.all.dy_x / p.all.count); }}};

template <std::size_t n>
std::string cause_among(const WrongFormula (&formulas)[n], double yours, const Place& place) {
    for (const WrongFormula& wrong : formulas) {
        const double found = wrong.gradient(place);
        if (std::abs(yours - found) <= 1e-9 * (1 + std::abs(found)))
            return std::string(wrong.words) + "\n";
    }
    return "";
}

void check_gradients(Kind kind, const std::vector<int>& counts, const std::string& hint) {
    const ByRank x = made(counts, 1.7), dy = made(counts, 2.9);
    const Moments moments = moments_of(kind, x);
    const auto all = with_one_sum(
        static_cast<int>(counts.size()), kind == Kind::batch_norm ? 3 : 2,
        [&](int rank, const SumOverRanks& sum_over_ranks) {
            const auto r = static_cast<std::size_t>(rank);
            const Normalised forward{x[r], dy[r], moments.mean, moments.inverse_std, weight};
            return kind == Kind::batch_norm ? batch_norm_backward(forward, sum_over_ranks)
                                            : rms_norm_backward(forward, sum_over_ranks);
        });
    std::string about;
    for (const int count : counts)
        about += (about.empty() ? "" : ", ") + std::to_string(count);
    about = "Ranks with " + about + " values: ";
    const auto place_of = [&](std::size_t r, std::size_t i) {
        return Place{(x[r][i] - moments.mean) * moments.inverse_std, dy[r][i],
                     sums_of(x, dy, moments), sums_of(x, dy, moments, static_cast<int>(r)),
                     weight * moments.inverse_std};
    };
    const auto cause = [&](std::size_t r, std::size_t i, double yours) {
        const Place place = place_of(r, i);
        return kind == Kind::batch_norm ? cause_among(wrong_batch_norm, yours, place)
                                        : cause_among(wrong_rms_norm, yours, place);
    };
    constexpr double h = 1e-5;
    for (std::size_t r = 0; r < counts.size(); r++) {
        const int rank = static_cast<int>(r);
        if (all[r].x.size() != x[r].size())
            throw Wrong(about + "rank " + std::to_string(r) + " has " +
                        std::to_string(x[r].size()) + ", and you give it " +
                        std::to_string(all[r].x.size()) + " gradients.");
        for (std::size_t i = 0; i < x[r].size(); i++) {
            ByRank more = x, less = x;
            more[r][i] += h;
            less[r][i] -= h;
            const double right =
                (loss_of(kind, more, dy, weight, bias) - loss_of(kind, less, dy, weight, bias)) /
                (2 * h);
            require_near(all[r].x[i], right,
                         about + "the gradient of x number " + std::to_string(i) + " of rank " +
                             std::to_string(r),
                         cause(r, i, all[r].x[i]) + hint);
        }
        const std::string own =
            "Gradients of parameters stay the rank's own: DDP averages them over the ranks.";
        require_near(all[r].weight,
                     (loss_of(kind, x, dy, weight + h, bias, rank) -
                      loss_of(kind, x, dy, weight - h, bias, rank)) /
                         (2 * h),
                     about + "the gradient of weight on rank " + std::to_string(r), own);
        const double bias_gradient =
            kind == Kind::batch_norm ? std::accumulate(dy[r].begin(), dy[r].end(), 0.0) : 0;
        require_near(all[r].bias, bias_gradient,
                     about + "the gradient of bias on rank " + std::to_string(r),
                     kind == Kind::batch_norm ? own
                                              : "RMS normalisation adds no bias, so its "
                                                "gradient is 0.");
    }
}

void check_batch_norm() {
    check_gradients(Kind::batch_norm, {6},
                    "The case: one rank. An x reaches the loss by itself, through the mean and "
                    "through the variance.");
    check_gradients(Kind::batch_norm, {5, 5},
                    "The case: two ranks. An x moves the outputs of the other rank, too.");
    check_gradients(Kind::batch_norm, {3, 7, 1, 4},
                    "The case: ranks with different numbers of values.");
    check_gradients(Kind::batch_norm, {4, 0, 6}, "The case: one rank has no value.");
}

void check_rms_norm() {
    check_gradients(Kind::rms_norm, {6},
                    "The case: one rank. An x reaches the loss by itself and through the rms.");
    check_gradients(Kind::rms_norm, {3, 7, 1, 4},
                    "The case: four ranks. An x moves the outputs of the others, too.");
    check_gradients(Kind::rms_norm, {4, 0, 6}, "The case: one rank has no value.");
}

// Returns what wrong scales tell, or "".
std::string cause_of_scale(const std::vector<int>& counts) {
    struct Wrong {
        const char* words;
        double (*scale)(double own, double all, double ranks);
    };
    constexpr Wrong wrongs[] = {
        {"Your factor leaves out world_size: DDP divides by it, too.\n",
         [](double own, double all, double) { return own / all; }},
        {"Your factor is upside down: ranks with few samples are scaled up.\n",
         [](double own, double all, double ranks) { return all / (own * ranks); }},
        {"Your factor is always 1: that's the mean of the ranks' means.\n",
         [](double, double, double) { return 1.0; }},
        {"Your factor is a whole number: int divided by int drops the rest in C++.\n",
         [](double own, double all, double ranks) { return std::floor(own * ranks / all); }},
        {"Your factor makes the SUM over all samples: divide by their number.\n",
         [](double own, double, double ranks) { return own * ranks; }}};
    const int all = std::accumulate(counts.begin(), counts.end(), 0);
    const auto ranks = static_cast<int>(counts.size());
    for (const Wrong& wrong : wrongs)
        if (std::ranges::all_of(counts, [&](int own) {
                return std::abs(loss_scale(own, all, ranks) - wrong.scale(own, all, ranks)) < 1e-9;
            }))
            return wrong.words;
    return "";
}

// A loss that is linear in one parameter: sample s of all has the gradient s + 1.
void check_scales(const std::vector<int>& counts) {
    const int all = std::accumulate(counts.begin(), counts.end(), 0);
    const auto ranks = static_cast<int>(counts.size());
    double averaged = 0, right = 0;
    std::string about;
    int sample = 0;
    for (const int own : counts) {
        double mean = 0;
        for (int i = 0; i < own; i++) {
            sample++;
            mean += static_cast<double>(sample) / own;
            right += static_cast<double>(sample) / all;
        }
        averaged += loss_scale(own, all, ranks) * mean / ranks;
        about += (about.empty() ? "" : ", ") + std::to_string(own);
    }
    if (!(std::abs(averaged - right) <= 1e-9 * right))
        throw Wrong(
            "Ranks with " + about +
            " samples, and sample number s has the gradient s. DDP's average of your scaled "
            "gradients is " +
            std::to_string(averaged) + "; the mean over all samples is " + std::to_string(right) +
            ".\n" + cause_of_scale(counts) +
            "How much does one sample weigh in the mean of its rank, and then in DDP's "
            "average over the ranks?");
}

void check_loss_scale() {
    check_scales({1, 3});
    check_scales({4, 4, 4});
    check_scales({5, 2, 8, 2});
}

}  // namespace

std::vector<Task> tasks() {
    return {{"batch_norm", check_batch_norm},
            {"rms_norm", check_rms_norm},
            {"loss_scale", check_loss_scale}};
}

}  // namespace ddp::test
