// The exercise error_feedback: gradients whose numbers tell what was lost, and a k that a formula
// gives.
#include "exercises/15_overlap/error_feedback.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Floats = std::vector<float>;

std::string to_string(float value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
}
std::string to_string(const Floats& values) {
    std::string text;
    for (const float value : values)
        text += (text.empty() ? "" : ", ") + to_string(value);
    return "(" + text + ")";
}
std::string to_string(const LargestElements& sent) {
    std::string text;
    for (std::size_t i = 0; i < sent.indices.size(); i++)
        text += (text.empty() ? "" : ", ") + to_string(sent.values.at(i)) + " at " +
                std::to_string(sent.indices[i]);
    return text.empty() ? "nothing" : text;
}

// ---- Task compress

// Returns what a wrong list tells, or "".
std::string cause_of(const LargestElements& sent, const LargestElements& right,
                     const Floats& gradient) {
    std::vector<int> sorted = sent.indices;
    std::ranges::sort(sorted);
    if (sent.indices.size() != right.indices.size())
        return "These are " + std::to_string(sent.indices.size()) + " elements, and not k.\n";
    if (sorted == right.indices && sent.indices != right.indices)
        return "These are the elements, but not by ascending index.\n";
    if (sent.indices == right.indices)
        for (std::size_t i = 0; i < sent.indices.size(); i++) {
            const float own = gradient[static_cast<std::size_t>(sent.indices[i])];
            if (sent.values[i] != right.values[i] && sent.values[i] == own)
                return "The value at " + std::to_string(sent.indices[i]) +
                       " is the gradient alone; the error belongs to it.\n";
        }
    return "";
}

void check_step(const Floats& gradient, std::size_t k, Floats& error, const LargestElements& right,
                const Floats& right_error, const std::string& hint) {
    const Floats before = error;
    const LargestElements sent = compress(gradient, k, error);
    const std::string about = "The gradient is " + to_string(gradient) + ", the error before it " +
                              to_string(before) + ", k is " + std::to_string(k) + ": ";
    if (sent.indices.size() != sent.values.size())
        throw Wrong(about + "you send " + std::to_string(sent.indices.size()) + " indices and " +
                    std::to_string(sent.values.size()) + " values.");
    if (sent.indices != right.indices || sent.values != right.values)
        throw Wrong(about + "you send " + to_string(sent) + ", and should send " +
                    to_string(right) + ".\n" + cause_of(sent, right, gradient) + hint);
    if (error != right_error)
        throw Wrong(about + "you send " + to_string(sent) + ", and keep the error " +
                    to_string(error) + ". What was not sent is " + to_string(right_error) +
                    ": sent and kept together are what was there before. `error` is all that is "
                    "remembered from step to step.");
}

void check_compress() {
    Floats error(4);
    check_step({1, 5, 2, 3}, 2, error, {{1, 3}, {5, 3}}, {1, 0, 2, 0},
               "The case: the first step, with an error of 0.");
    check_step({1, 0, 2, 1}, 1, error, {{2}, {4}}, {2, 0, 0, 1},
               "What was not sent before is added to the gradient, and may be sent now.");
    check_step({-9, 0, 0, 0}, 1, error, {{0}, {-7}}, {0, 0, 0, 1},
               "Largest in magnitude: a gradient far below 0 is as large as one far above.");
    error.assign(5, 0);
    check_step({2, -2, 2, 1, -2}, 3, error, {{0, 1, 2}, {2, -2, 2}}, {0, 0, 0, 1, -2},
               "Of equal ones those with the lowest indices go first.");
    check_step({0, 3, 0, 0, -1}, 0, error, {}, {0, 3, 0, 1, -3},
               "The case: k is 0, so everything is kept.");
    check_step({1, 1, 1, 1, 1}, 5, error, {{0, 1, 2, 3, 4}, {1, 4, 1, 2, -2}}, {0, 0, 0, 0, 0},
               "The case: k is the number of elements, so everything is sent.");
    error = {0, 5, 0};
    check_step({2, -1, 1}, 1, error, {{1}, {4}}, {2, 0, 1},
               "Which is largest is decided by gradient + error, not by the gradient alone.");
}

// ---- Task mean

// Returns what a wrong mean tells, or "".
std::string cause_of_mean(const Floats& yours, const std::vector<LargestElements>& sent,
                          const Floats& right) {
    const auto ranks = static_cast<float>(sent.size());
    Floats sums = right, last(right.size()), by_place(right.size());
    for (float& sum : sums)
        sum *= ranks;
    for (const LargestElements& theirs : sent) {
        for (std::size_t i = 0; i < theirs.indices.size(); i++) {
            last[static_cast<std::size_t>(theirs.indices[i])] = theirs.values[i] / ranks;
            by_place[i] += theirs.values[i] / ranks;
        }
    }
    if (std::ranges::count(yours, 0.f) == std::ssize(yours))
        return "Yours is all 0: int divided by int drops the rest in C++.\n";
    if (yours == sums)
        return "This is the sum, not divided by the number of ranks.\n";
    if (yours == by_place)
        return "Value number i belongs to element indices[i], not to element i.\n";
    if (yours == last)
        return "A rank's value overwrites those of the ranks before it: add them.\n";
    return "";
}

void check_mean_of(const std::vector<LargestElements>& sent, const Floats& right,
                   const std::string& hint) {
    const Floats mean = mean_of(sent, right.size());
    if (mean == right)
        return;
    std::string all;
    for (std::size_t rank = 0; rank < sent.size(); rank++)
        all += "  rank " + std::to_string(rank) + " sends " + to_string(sent[rank]) + "\n";
    throw Wrong(std::to_string(right.size()) + " elements:\n" + all + "You say " + to_string(mean) +
                ", right is " + to_string(right) + ".\n" + cause_of_mean(mean, sent, right) + hint);
}

void check_mean() {
    check_mean_of({{{0, 2}, {6, 3}}}, {6, 0, 3}, "The case: there is one rank only.");
    check_mean_of({{{0, 2}, {6, 2}}, {{0, 2}, {2, 4.5f}}}, {4, 0, 3.25f, 0},
                  "The case: both ranks have sent the same elements.");
    check_mean_of({{{0, 2}, {6, 4}}, {{1, 2}, {8, 2}}, {{}, {}}, {{2, 3}, {2, 12}}}, {1.5, 2, 2, 3},
                  "A mean over four ranks is divided by four, however many have sent: a rank "
                  "that has not sent an element brings a 0 now, and the element itself later.");
    check_mean_of({{{0}, {6}}, {{}, {}}}, {3, 0}, "The case: rank 1 has sent nothing.");
}

// ---- Task break_even

// Returns what a wrong k tells, or "".
std::string cause_of_k(double k, const CostModel& message, int ranks, std::size_t elements) {
    const double all_reduce = two_shot_seconds(message, ranks, elements * sizeof(float));
    const double a = message.alpha_s, pair = 8 * message.beta_s_per_byte, n = ranks;
    const std::pair<double, const char*> wrongs[] = {
        {(all_reduce - a) / ((n - 1) * pair / 2),
         "You count 4 bytes for a pair: the indices are sent, too.\n"},
        {(all_reduce - a) / (n * pair),
         "You count a list from every rank; a rank need not send its own to itself.\n"},
        {(all_reduce - a) / pair, "You count one list; each other rank has one.\n"},
        {all_reduce / ((n - 1) * pair), "You leave out the latency of the all-gather.\n"},
        {static_cast<double>(elements) / n,
         "That is one Nth of the elements, which holds for very large buckets. (Or do you count "
         "two latencies for the all-gather? It has one.)\n"},
        {(two_shot_seconds(message, ranks, elements) - a) / ((n - 1) * pair),
         "two_shot_seconds takes bytes, and a float has four.\n"}};
    for (const auto& [wrong, words] : wrongs)
        if (std::abs(k - wrong) <= 1)
            return words;
    return "";
}

void check_k(int ranks, std::size_t elements, const std::string& hint) {
    const CostModel message{10e-3, 1 / 2e6};
    const double k = break_even(message, ranks, elements);
    const double all_reduce = two_shot_seconds(message, ranks, elements * sizeof(float));
    const double gather = message.alpha_s + (ranks - 1) * 8 * k * message.beta_s_per_byte;
    if (!(std::abs(gather - all_reduce) <= 1e-3 * all_reduce))
        throw Wrong(std::to_string(elements) + " elements on " + std::to_string(ranks) +
                    " ranks, a link of 2 MB/s with a latency of 10 ms: your k is " +
                    std::to_string(k) + ". With it the all-gather takes " +
                    to_string(static_cast<float>(gather)) + " s, and the all-reduce " +
                    to_string(static_cast<float>(all_reduce)) + " s.\n" +
                    cause_of_k(k, message, ranks, elements) + hint);
    held();
}

void check_break_even() {
    check_k(2, 20'000, "The case: two ranks, so each receives one list.");
    check_k(4, 20'000, "The case: four ranks, so each receives three lists, one after the other.");
    check_k(4, 6'000, "The case: the bucket is short, so latencies count.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"compress", check_compress}, {"mean", check_mean}, {"break_even", check_break_even}};
}

}  // namespace ddp::test
