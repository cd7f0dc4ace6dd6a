// The exercise causal_softmax, beside the same formula in double.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "exercises/20_transformer/causal_softmax.hpp"
#include "exercises/support/launches.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

bool is_near(float yours, float right) {
    return std::abs(yours - right) <= 1e-5f * std::abs(right) || yours == right;
}

void check_merge() {
    struct Case {
        SoftmaxSums a, b, right;
        const char* hint;
    };
    const Case cases[] = {
        {{3, 1}, {2, 1}, {3, 1.367879f}, "The second side is rescaled by exp(-1)."},
        {{1, 1.6f}, {3, 1.4f}, {3, 1.616536f}, "The first side is rescaled by exp(-2)."},
        {{2, 1}, {2, 1}, {2, 2}, "Both sides have the same score."},
        {{2, 1.4f}, {}, {2, 1.4f}, "The second side has no scores. Nothing changes."},
        {{}, {-3, 1.4f}, {-3, 1.4f}, "The first side has no scores. Nothing changes."},
        {{1000, 1.4f}, {-1000, 1}, {1000, 1.4f}, "The scores are far apart."}};
    for (const auto& [a, b, right, hint] : cases) {
        const SoftmaxSums yours = merged(a, b);
        if (is_near(yours.largest, right.largest) && is_near(yours.sum, right.sum))
            continue;
        std::string cause;
        if (!std::isfinite(yours.sum))
            cause =
                "exp of a number above 88 is infinite, and infinity times 0 is NaN. "
                "Subtract the larger one first, so that every exponent is 0 or less.\n";
        else if (!is_near(yours.largest, right.largest))
            cause = "The largest of all scores is the larger of the two.\n";
        else if (is_near(yours.sum, a.sum + b.sum))
            cause = "You add the sums as they are: each has its own largest score.\n";
        char text[160];
        std::snprintf(
            text, sizeof text, "merged({%g, %g}, {%g, %g}): you say {%g, %g}; right is {%g, %g}.\n",
            a.largest, a.sum, b.largest, b.sum, yours.largest, yours.sum, right.largest, right.sum);
        throw Wrong(text + cause + hint);
    }
}

struct Case {
    ScoreShape shape;
    std::vector<int> lengths;  // [sentences]
    bool is_causal;
    float base, rise;  // about the first score of a row, and what the next one has more
    std::string hint;
};

std::string text(int sentence, int head, int query, int key) {
    return "[" + std::to_string(sentence) + ", " + std::to_string(head) + ", " +
           std::to_string(query) + ", " + std::to_string(key) + "]";
}

// Checks the weights, and how often each was written and each score read.
void check_case(const Case& one) {
    constexpr float junk = 4096;  // what the weights hold before the call
    const auto [sentences, heads, queries, keys] = one.shape;
    const std::string what =
        "[sentences, heads, queries, keys] = " + text(sentences, heads, queries, keys) +
        (one.is_causal ? ", causal" : "") + ": ";
    trying(what + one.hint);
    std::vector<float> scores;  // NaN where no query sees them
    std::vector<double> right;
    std::vector<std::string> places;
    for (int row = 0; row < sentences * heads * queries; row++) {
        const int s = row / queries / heads, q = row % queries;
        const int length = one.lengths[static_cast<std::size_t>(s)];
        const int seen = one.is_causal ? std::min(length, q + 1) : length;
        double sum = 0;
        for (int k = 0; k < keys; k++) {
            const float wiggle = static_cast<float>((row * 29 + k * 37) % 23) * 0.25f - 2.5f;
            const float score = one.base + one.rise * static_cast<float>(k) + wiggle;
            scores.push_back(k < seen ? score : std::nanf(""));
            right.push_back(k < seen ? std::exp(double{score} - one.base) : 0);
            sum += right.back();
            places.push_back(text(s, row / queries % heads, q, k));
        }
        for (auto weight = right.end() - keys; weight < right.end(); weight++)
            *weight /= sum;
    }
    Stream stream;
    Buffer<float> on_device(scores), weights(std::vector<float>(scores.size(), junk));
    Buffer<int> lengths(one.lengths);
    Buffer<unsigned int> reads(std::vector<unsigned int>(scores.size())),
        writes(std::vector<unsigned int>(scores.size()));
    const auto call = [&] {
        causal_softmax(Scores(on_device.data(), reads.data()),
                       Weights(weights.data(), writes.data()), one.shape, lengths.data(),
                       one.is_causal, stream);
        stream.synchronize();
    };
    call();
    const std::vector<float> yours = weights.to_host_now();
    const std::vector<unsigned int> read = reads.to_host_now(), written = writes.to_host_now();
    for (std::size_t i = 0; i < yours.size(); i++) {
        const std::string place = what + "element " + places[i];
        if (!(std::abs(double{yours[i]} - right[i]) <= 1e-4 * right[i] + 1e-9))
            throw Wrong(place + " is " + std::to_string(yours[i]) + "; right is " +
                        std::to_string(right[i]) + ".\n" +
                        (yours[i] == junk ? "No thread has written this one.\n"
                         : std::isnan(yours[i])
                             ? "Have you read a score that the mask hides? Those "
                               "are NaN here. Or is the largest not subtracted, "
                               "so that infinity is divided by infinity?\n"
                         : right[i] == 0 ? "The mask hides this key, so its weight is 0.\n"
                                         : "") +
                        one.hint);
        if (read[i] > 2)
            throw Wrong(place + ": its score is read " + std::to_string(read[i]) +
                        " times. Twice is enough: once for largest and sum together, and once "
                        "to write.");
        if (written[i] != 1)
            throw Wrong(place + " is right, and written " + std::to_string(written[i]) +
                        " times. Once is enough, if the sum is known.");
    }
    check_kernels(what + "causal_softmax", call);
}

void check_softmax() {
    check_case({{1, 1, 2, 4}, {4}, false, 0, 0, "A weight is exp(score) / the row's sum of them."});
    check_case({{1, 1, 2, 7}, {7}, false, 0, 8, "Scores rise: rescale each time."});
    check_case({{1, 1, 3, 5}, {5}, false, 1000, 0, "exp(1000) is infinite."});
    check_case({{1, 1, 3, 5}, {5}, false, -1000, 0, "About -1000. A row must begin with less."});
    check_case({{3, 1, 2, 6}, {6, 1, 3}, false, 0, 0, "After a sentence comes padding."});
    check_case({{2, 3, 2, 6}, {5, 2}, false, 0, 0, "Three heads. Whose sentence is a row?"});
    check_case({{1, 1, 5, 5}, {5}, true, 0, 0, "Query q sees the keys 0 to q, itself included."});
    check_case({{2, 2, 5, 5}, {2, 5}, true, 0, 0, "A query sees the keys that both let through."});
    check_case({{3, 2, 37, 41}, {41, 13, 29}, true, 0, 0, "Many rows."});
}

}  // namespace

std::vector<Task> tasks() {
    return {{"merge", check_merge}, {"softmax", check_softmax}};
}

}  // namespace ddp::test
