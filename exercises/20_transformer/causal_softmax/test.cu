// The exercise causal_softmax, beside the same formula in double; and how often each score is read.
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

constexpr float junk_weight = 4096;  // what the weights hold before a call
const float nan_score = std::nanf("");

// ---- Task merge

using Row = std::vector<double>;

// Returns the same of these scores, in two passes.
SoftmaxSums sums_of(const Row& scores) {
    if (scores.empty())
        return {};
    const double largest = *std::ranges::max_element(scores);
    double sum = 0;
    for (const double score : scores)
        sum += std::exp(score - largest);
    return {static_cast<float>(largest), static_cast<float>(sum)};
}

bool is_near(float yours, float right) {
    return std::abs(yours - right) <= 1e-5f * std::abs(right) || yours == right;
}

std::string to_string(SoftmaxSums sums) {
    char text[80];
    std::snprintf(text, sizeof text, "{%g, %g}", static_cast<double>(sums.largest),
                  static_cast<double>(sums.sum));
    return text;
}

// Returns what a wrong result tells, or "".
std::string cause_of(SoftmaxSums yours, SoftmaxSums a, SoftmaxSums b, SoftmaxSums right) {
    const bool is_nan = std::isnan(yours.sum) || std::isnan(yours.largest);
    if (is_nan && (a.sum == 0 || b.sum == 0))
        return "That's NaN, as minus infinity minus minus infinity is: what does a side without "
               "scores do in your formula?\n";
    if (is_nan || std::isinf(yours.sum))
        return "The sum overflows on the way: exp of a number above 88 is infinite, and infinity "
               "times 0 is NaN. Subtract the larger one first, so that every exponent is 0 or "
               "less.\n";
    if (!is_near(yours.largest, right.largest))
        return "The largest of all scores is the larger of the two.\n";
    if (is_near(yours.sum, a.sum + b.sum))
        return "You add the sums as they are, but each is relative to its own largest score.\n";
    if (a.largest < b.largest ? is_near(yours.sum, b.sum) : is_near(yours.sum, a.sum))
        return "You lose the sum of the side with the smaller scores.\n";
    return "";
}

void check_merge_of(const Row& scores_a, const Row& scores_b, const std::string& hint) {
    const SoftmaxSums a = sums_of(scores_a), b = sums_of(scores_b);
    Row both = scores_a;
    both.insert(both.end(), scores_b.begin(), scores_b.end());
    const SoftmaxSums right = sums_of(both), yours = merged(a, b);
    if (is_near(yours.largest, right.largest) && is_near(yours.sum, right.sum))
        return held();
    throw Wrong("merged(" + to_string(a) + ", " + to_string(b) + "), {largest, sum}: you say " +
                to_string(yours) + ", right is " + to_string(right) + ".\n" +
                cause_of(yours, a, b, right) + hint);
}

void check_merge() {
    check_merge_of({3}, {2}, "The case: the second side is rescaled, by exp(2 - 3).");
    check_merge_of({1, 0.5}, {2, 3}, "The case: the first side is rescaled, by exp(1 - 3).");
    check_merge_of({2}, {2}, "The case: both sides have the same score.");
    check_merge_of({1, 2}, {}, "The case: the second side has no scores. Nothing changes.");
    check_merge_of({}, {-3, -4}, "The case: the first side has no scores. Nothing changes.");
    check_merge_of({1000, 999}, {-1000}, "The case: the scores are far apart.");
}

// ---- Task softmax

struct Case {
    ScoreShape shape;
    std::vector<int> lengths;  // [sentences]
    bool is_causal;
    float (*score)(std::size_t row, int k);

    std::size_t rows() const {
        return static_cast<std::size_t>(shape.sentences) * shape.heads * shape.queries;
    }
    std::size_t keys() const { return static_cast<std::size_t>(shape.keys); }
    int seen(std::size_t row) const {
        const auto queries = static_cast<std::size_t>(shape.queries);
        const int length = lengths[row / queries / static_cast<std::size_t>(shape.heads)];
        return is_causal ? std::min(length, static_cast<int>(row % queries) + 1) : length;
    }
    // The scores that no query sees are NaN.
    std::vector<float> scores() const {
        std::vector<float> all(rows() * keys(), nan_score);
        for (std::size_t row = 0; row < rows(); row++)
            for (int k = 0; k < seen(row); k++)
                all[row * keys() + static_cast<std::size_t>(k)] = score(row, k);
        return all;
    }
    std::vector<double> right() const {
        std::vector<double> all(rows() * keys());
        for (std::size_t row = 0; row < rows(); row++) {
            double largest = -INFINITY, sum = 0;
            for (int k = 0; k < seen(row); k++)
                largest = std::max(largest, double{score(row, k)});
            for (int k = 0; k < seen(row); k++)
                sum += std::exp(double{score(row, k)} - largest);
            for (int k = 0; k < seen(row); k++)
                all[row * keys() + static_cast<std::size_t>(k)] =
                    std::exp(double{score(row, k)} - largest) / sum;
        }
        return all;
    }
    std::string place(std::size_t i) const {
        const std::size_t row = i / keys(), queries = static_cast<std::size_t>(shape.queries),
                          heads = static_cast<std::size_t>(shape.heads);
        return "sentence " + std::to_string(row / queries / heads) + " (" +
               std::to_string(lengths[row / queries / heads]) + " keys), head " +
               std::to_string(row / queries % heads) + ", query " + std::to_string(row % queries) +
               ", key " + std::to_string(i % keys());
    }
    std::string text() const {
        return "[sentences, heads, queries, keys] = [" + std::to_string(shape.sentences) + ", " +
               std::to_string(shape.heads) + ", " + std::to_string(shape.queries) + ", " +
               std::to_string(shape.keys) + "]" + (is_causal ? ", causal" : "") + ": ";
    }
};

float mixed(std::size_t row, int k) {
    return static_cast<float>((row * 29 + static_cast<std::size_t>(k) * 37) % 23) * 0.25f - 2.5f;
}
float rising(std::size_t, int k) {
    return static_cast<float>(k);
}
float falling(std::size_t, int k) {
    return static_cast<float>(-k);
}
float large(std::size_t row, int k) {
    return 1000.0f + mixed(row, k);
}
float far_below(std::size_t row, int k) {
    return -1000.0f + mixed(row, k);
}

// The memory of one call.
struct OneCall {
    explicit OneCall(const Case& one)
        : shape(one.shape),
          is_causal(one.is_causal),
          scores(one.scores()),
          weights(std::vector<float>(scores.size(), junk_weight)),
          lengths(one.lengths),
          reads(std::vector<unsigned int>(scores.size())),
          writes(std::vector<unsigned int>(scores.size())) {}

    void enqueue() {
        causal_softmax(Scores(scores.data(), reads.data()), Weights(weights.data(), writes.data()),
                       shape, lengths.data(), is_causal, stream);
    }

    const ScoreShape shape;
    const bool is_causal;
    Stream stream;
    Buffer<float> scores, weights;
    Buffer<int> lengths;
    Buffer<unsigned int> reads, writes;
};

// Returns what a wrong weight tells, or "".
std::string cause_of_weight(const Case& one, std::size_t i, float yours) {
    const bool is_seen = static_cast<int>(i % one.keys()) < one.seen(i / one.keys());
    if (yours == junk_weight)
        return "That's what the weights held before your call: no thread has written this one.\n";
    if (std::isnan(yours) && one.seen(i / one.keys()) == 0)
        return "This query sees no key: 0 / 0 is NaN, and its row should be 0.\n";
    if (std::isnan(yours))
        return "It's NaN. Have you read a score that the mask hides? Those are NaN here. Or is the "
               "largest score not subtracted, so that infinity is divided by infinity?\n";
    if (!is_seen)
        return "The mask hides this key, so its weight is 0.\n";
    return "";
}

void check_weights(const Case& one, const std::vector<float>& yours, const std::string& hint) {
    const std::vector<double> right = one.right();
    for (std::size_t i = 0; i < right.size(); i++) {
        if (std::abs(double{yours[i]} - right[i]) <= 1e-4 * right[i] + 1e-9)
            continue;
        char text[80];
        std::snprintf(text, sizeof text, ", is %.5g, right is %.5g.\n",
                      static_cast<double>(yours[i]), right[i]);
        throw Wrong(one.text() + "the weight of " + one.place(i) + text +
                    cause_of_weight(one, i, yours[i]) + hint);
    }
    held();
}

void check_traffic(const Case& one, OneCall& call) {
    const std::vector<unsigned int> reads = call.reads.to_host_now(),
                                    writes = call.writes.to_host_now();
    for (std::size_t i = 0; i < reads.size(); i++) {
        const std::string right = one.text() + "the weights are right, but ";
        if (reads[i] > 2)
            throw Wrong(right + "the score of " + one.place(i) + ", is read " +
                        std::to_string(reads[i]) +
                        " times. Twice is enough: once for largest and sum together, and once to "
                        "write. And a row is for one thread.");
        if (writes[i] != 1)
            throw Wrong(right + "the weight of " + one.place(i) + ", is written " +
                        std::to_string(writes[i]) + " times. Once is enough, if the sum is known.");
    }
    held();
}

void check_case(const Case& one, const std::string& hint) {
    trying(one.text() + hint);
    OneCall call(one);
    call.enqueue();
    call.stream.synchronize();
    check_weights(one, call.weights.to_host_now(), hint);
    check_traffic(one, call);
}

// Checks that one launch of many threads does the work, while the host goes on.
void check_work() {
    const Case one{{2, 3, 20, 9}, {9, 4}, true, mixed};
    const std::string what = one.text() + "causal_softmax";
    OneCall call(one);
    const auto work = [&] {
        call.enqueue();
        call.stream.synchronize();
    };
    check_kernels(what, work);
    if (const std::size_t launches = launches_in(work).size(); can_see_launches && launches != 1)
        throw Wrong(what + ": the result is right, but you have launched " +
                    std::to_string(launches) + " kernels. One can do all of it.");
    OneCall late(one);
    late.scores.copy_from(std::vector<float>(late.scores.size(), 1.0f));
    late.lengths.copy_from(std::vector<int>{3, 2});
    check_host_goes_on(what, late.stream, late.scores, call.scores, [&] {
        DDP_CHECK(cudaMemcpyAsync(late.lengths.data(), call.lengths.data(),
                                  call.lengths.size() * sizeof(int), cudaMemcpyDeviceToDevice,
                                  late.stream));
        late.enqueue();
    });
    check_weights(one, late.weights.to_host_now(),
                  "The scores and the lengths came while the host had gone on: read both in your "
                  "kernel, and neither on the host.");
}

void check_softmax() {
    check_case(
        {{1, 1, 2, 4}, {4}, false, falling},
        "The case: nothing is masked. A weight is exp(score) / the row's sum of exp(score).");
    check_case({{1, 1, 2, 7}, {7}, false, rising},
               "The case: scores rise, so the sum has to be rescaled all the time.");
    check_case({{1, 1, 3, 5}, {5}, false, large},
               "The case: scores about 1000. exp(89) is infinite already.");
    check_case({{1, 1, 3, 5}, {5}, false, far_below},
               "The case: scores about -1000. The number that a row begins with must be smaller.");
    check_case({{3, 1, 2, 6}, {6, 1, 3}, false, mixed},
               "The case: sentences of different lengths. After them comes padding.");
    check_case({{2, 3, 2, 6}, {5, 2}, false, mixed},
               "The case: three heads. Which sentence does a row belong to?");
    check_case({{1, 1, 5, 5}, {5}, true, mixed},
               "The case: causal. Query q sees the keys 0 to q, itself included.");
    check_case({{2, 2, 5, 5}, {2, 5}, true, mixed},
               "The case: both masks. A query sees the keys that both let through.");
    check_case({{3, 2, 37, 41}, {41, 13, 29}, true, mixed}, "The case: many rows.");
    check_work();
}

void check_no_keys() {
    check_merge_of({}, {}, "The case: neither side has a score.");
    check_case({{3, 2, 2, 4}, {4, 0, 2}, true, mixed},
               "The case: a sentence has no key. Its rows are 0.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"merge", check_merge}, {"softmax", check_softmax}, {"no_keys", check_no_keys}};
}

}  // namespace ddp::test
