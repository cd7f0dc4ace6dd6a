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

// What is to be known of these scores, in two passes.
SoftmaxSums sums_of(const Row& scores) {
    if (scores.empty())
        return {};
    const double largest = *std::ranges::max_element(scores);
    double sum = 0;
    for (const double score : scores)
        sum += std::exp(score - largest);
    return {static_cast<float>(largest), static_cast<float>(sum)};
}

bool is_near(double yours, double right) {
    return std::abs(yours - right) <= 1e-5 * std::abs(right) || yours == right;
}

std::string text_of(SoftmaxSums sums) {
    char text[80];
    std::snprintf(text, sizeof text, "{%g, %g}", static_cast<double>(sums.largest),
                  static_cast<double>(sums.sum));
    return text;
}

// Returns what a wrong result tells, or "".
std::string cause_of(SoftmaxSums yours, SoftmaxSums a, SoftmaxSums b, SoftmaxSums right) {
    const bool is_nan = std::isnan(yours.sum) || std::isnan(yours.largest);
    if (is_nan && (a.sum == 0 || b.sum == 0))
        return "That is NaN. Minus infinity minus minus infinity is one: what does a side without "
               "scores do in your formula?\n";
    if (is_nan || std::isinf(yours.sum))
        return "The sum overflows on the way: exp of a number above 88 is infinite, and infinity "
               "times 0 is NaN. Subtract the larger one first, so that every exponent is 0 or "
               "less.\n";
    if (!is_near(double{yours.largest}, double{right.largest}))
        return "The largest of all scores is the larger one of the two.\n";
    if (is_near(double{yours.sum}, double{a.sum + b.sum}))
        return "You add the sums as they are, but each is about its own largest score: exp(score - "
               "largest) becomes smaller when the largest grows.\n";
    if (a.largest < b.largest ? is_near(double{yours.sum}, double{b.sum})
                              : is_near(double{yours.sum}, double{a.sum}))
        return "The sum of the side with the smaller scores is lost; it counts less, but it "
               "counts.\n";
    return "";
}

void check_merge_of(const Row& scores_a, const Row& scores_b, const std::string& hint) {
    const SoftmaxSums a = sums_of(scores_a), b = sums_of(scores_b);
    Row both = scores_a;
    both.insert(both.end(), scores_b.begin(), scores_b.end());
    const SoftmaxSums right = sums_of(both), yours = merged(a, b);
    if (is_near(double{yours.largest}, double{right.largest}) &&
        is_near(double{yours.sum}, double{right.sum}))
        return held();
    throw Wrong("merged(" + text_of(a) + ", " + text_of(b) + "), {largest, sum}: you say " +
                text_of(yours) + ", right is " + text_of(right) + ".\n" +
                cause_of(yours, a, b, right) + hint);
}

void check_merge() {
    const std::string rescale =
        "The side whose largest score is the smaller one is rescaled by exp(its largest - the new "
        "largest).";
    check_merge_of({2}, {2}, "Both sides have one score, and it is the same.");
    check_merge_of({3, 1}, {2}, "The second side is rescaled. " + rescale);
    check_merge_of({1, 0.5}, {2, 3}, "The first side is rescaled. " + rescale);
    check_merge_of({1, 2}, {}, "The second side has no scores: nothing changes.");
    check_merge_of({}, {-3, -4}, "The first side has no scores: nothing changes.");
    check_merge_of({}, {}, "Neither side has a score.");
    check_merge_of({1000, 999}, {-1000}, "The scores are far apart.");
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
        return "That is what the weights held before your call: nobody has written this one.\n";
    if (std::isnan(yours) && one.seen(i / one.keys()) == 0)
        return "This query sees no key: 0 / 0 is NaN, and its row is to be 0.\n";
    if (std::isnan(yours))
        return "It is NaN. A score that the mask hides is NaN here, so has it been read? Or is "
               "infinity divided by infinity: is the largest score subtracted, and is it one of "
               "this row's?\n";
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
        const bool is_seen = static_cast<int>(i % one.keys()) < one.seen(i / one.keys());
        if (reads[i] > (is_seen ? 2u : 0u))
            throw std::runtime_error(
                one.text() + "the weights are right, but the score of " + one.place(i) +
                ", is read " + std::to_string(reads[i]) + " times. " +
                (!is_seen ? "The mask hides it: it need not be read at all."
                 : reads[i] > 3
                     ? "Twice is enough for its row. Do several threads take the same row?"
                     : "Twice is allowed: once for largest and sum together, and once to write. Is "
                       "the largest one searched for in a pass of its own?"));
        if (writes[i] != 1)
            throw std::runtime_error(one.text() + "the weights are right, but the weight of " +
                                     one.place(i) + ", is written " + std::to_string(writes[i]) +
                                     " times: once is enough, when the sum is known.");
    }
    held();
}

void check_case(const Case& one, const std::string& hint) {
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
                    std::to_string(launches) +
                    " kernels. One does all of it: the largest and the sum need no pass of their "
                    "own.");
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
                  "The scores and the lengths came while the host had gone on: read both in a "
                  "kernel on the stream that you were given, and neither on the host.");
}

void check_softmax() {
    check_case({{1, 1, 2, 4}, {4}, false, falling},
               "Nothing is masked here: exp(score) / the row's sum of exp(score).");
    check_case({{1, 1, 2, 7}, {7}, false, rising},
               "Each score is larger than those before it, so the sum has to be rescaled whenever "
               "a larger one comes.");
    check_case({{1, 1, 3, 5}, {5}, false, large},
               "The scores are about 1000, and exp(89) is infinite already.");
    check_case({{1, 1, 3, 5}, {5}, false, far_below},
               "The scores are about -1000: what a row begins with must not win against them.");
    check_case({{3, 1, 2, 6}, {6, 1, 3}, false, mixed},
               "Sentences have other numbers of keys; what is behind them is padding.");
    check_case({{2, 3, 2, 6}, {5, 2}, false, mixed},
               "There are three heads: which sentence does a row belong to?");
    check_case({{1, 1, 5, 5}, {5}, true, mixed}, "Query q sees the keys 0 .. q, itself included.");
    check_case({{2, 2, 5, 5}, {2, 5}, true, mixed},
               "Both masks are at work: a query sees the keys that both let through.");
    check_case({{1, 2, 7, 3}, {3}, true, mixed}, "There are more queries than keys.");
    check_case({{1, 2, 3, 8}, {7}, true, mixed}, "There are more keys than queries.");
    check_case({{3, 2, 2, 4}, {4, 0, 2}, true, mixed},
               "A sentence has no key at all: its rows are 0.");
    check_case({{3, 2, 37, 41}, {41, 13, 29}, true, mixed}, "There are many rows.");
    check_case(
        {{1, 2, 3, 1300}, {1290}, false, mixed},
        "The rows are long: longer than a block of threads, and than the array of a thread.");
    check_work();
}

}  // namespace

std::vector<Task> tasks() {
    return {{"merge", check_merge}, {"softmax", check_softmax}};
}

}  // namespace ddp::test
