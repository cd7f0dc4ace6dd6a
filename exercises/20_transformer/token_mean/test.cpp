// The exercise token_mean: what each token weighs in the averaged gradient.
#include "exercises/20_transformer/token_mean.hpp"

#include <cmath>
#include <cstdio>
#include <string>

#include "exercises/support/sums.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Tokens = std::vector<std::vector<int>>;  // [rank][micro-batch]

int ranks_of(const Tokens& tokens) {
    return static_cast<int>(tokens.size());
}
double all_of(const Tokens& tokens) {
    double all = 0;
    for (const std::vector<int>& of_rank : tokens)
        for (const int in_batch : of_rank)
            all += in_batch;
    return all;
}
std::string number(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}
std::string to_string(const Tokens& tokens) {
    std::string text = "Ranks with micro-batches of ";
    for (const std::vector<int>& of_rank : tokens) {
        text += &of_rank == &tokens[0] ? "(" : ", (";
        for (std::size_t i = 0; i < of_rank.size(); i++)
            text += (i == 0 ? "" : ", ") + std::to_string(of_rank[i]);
        text += ")";
    }
    return text + " tokens: ";
}
bool is_near(double yours, double right) {
    return std::abs(yours - right) <= 1e-9 * std::abs(right);
}

// ---- Task skew

// Returns what a wrong skew tells, or "".
std::string cause_of_skew(const Tokens& tokens, double yours) {
    double least = INFINITY, most = 0, least_rank = INFINITY, max_rank = 0;
    std::size_t batches = 0, fewest = tokens[0].size();
    for (const std::vector<int>& of_rank : tokens) {
        double sum = 0;
        batches = std::max(batches, of_rank.size());
        fewest = std::min(fewest, of_rank.size());
        for (const int in_batch : of_rank) {
            sum += in_batch;
            least = std::min(least, double{1} * in_batch);
            most = std::max(most, double{1} * in_batch);
        }
        least_rank = std::min(least_rank, sum);
        max_rank = std::max(max_rank, sum);
    }
    if (batches != fewest && is_near(yours, most / least))
        return "A rank with fewer micro-batches divides by fewer: its tokens weigh more.\n";
    if (is_near(yours, max_rank / least_rank))
        return "You compare the ranks' numbers of tokens. But a mean is taken over a "
               "micro-batch.\n";
    if (yours > 0 && yours < 1)
        return "That's the lightest by the heaviest. A token of a small micro-batch weighs most.\n";
    if (yours == std::floor(yours))
        return "You say a whole number: int divided by int drops the rest in C++.\n";
    return "";
}

void check_skew_of(const Tokens& tokens, double right, const std::string& hint) {
    const double yours = weight_skew(tokens);
    if (!is_near(yours, right))
        throw Wrong(to_string(tokens) + "you say that the heaviest token weighs " + number(yours) +
                    " times as much as the lightest; right is " + number(right) + ".\n" +
                    cause_of_skew(tokens, yours) + hint);
    held();
}

void check_skew() {
    check_skew_of({{4, 2}, {8}}, 2,
                  "The case: rank 0 divides by 4 x 2 and by 2 x 2, rank 1 by 8 x 1.");
    check_skew_of({{12}, {5}}, 12.0 / 5, "The case: one micro-batch on each of two ranks.");
    check_skew_of({{6}}, 1,
                  "The case: one rank with one micro-batch, so all tokens weigh the same.");
    check_skew_of({{7, 2, 9}, {3}, {11}}, 27.0 / 3,
                  "The case: three ranks with different numbers of micro-batches.");
}

// ---- Task divisors

// Returns what a wrong divisor tells, or "".
std::string cause_of_divisor(const Tokens& tokens, std::size_t rank, std::size_t batch,
                             double yours) {
    const double all = all_of(tokens), world = ranks_of(tokens),
                 batches = static_cast<double>(tokens[rank].size());
    double own = 0;
    for (const int in_batch : tokens[rank])
        own += in_batch;
    const double in_batch = tokens[rank][batch];
    if (is_near(yours, all))
        return "You divide by all tokens, and then DDP divides by the number of ranks once more.\n";
    if (is_near(yours, own))
        return "That is the rank's own mean: a token of a rank with few tokens weighs more.\n";
    if (is_near(yours, in_batch) || is_near(yours, in_batch * batches))
        return "That is the micro-batch's own mean: a token of a short one weighs more.\n";
    if (is_near(yours, own * world) || is_near(yours, own / world))
        return "These are the rank's own tokens. Where are the other ranks' tokens?\n";
    if (is_near(yours, all / world * batches) || is_near(yours, all / world / batches))
        return "The number of micro-batches doesn't matter: their gradients are added, and not "
               "averaged.\n";
    if (is_near(yours, all * world))
        return "DDP divides by the number of ranks, so your divisor has to undo that.\n";
    return "";
}

void check_divisors_of(const Tokens& tokens, const std::string& hint) {
    const int ranks = ranks_of(tokens);
    const auto divisors = with_one_sum(ranks, 1, [&](int rank, const SumOverRanks& sum_over_ranks) {
        return token_divisors(tokens[static_cast<std::size_t>(rank)], ranks, sum_over_ranks);
    });
    const double all = all_of(tokens), right = all / ranks;
    for (std::size_t rank = 0; rank < tokens.size(); rank++) {
        if (divisors[rank].size() != tokens[rank].size())
            throw Wrong(to_string(tokens) + "rank " + std::to_string(rank) + " has " +
                        std::to_string(tokens[rank].size()) + " micro-batches, and you give it " +
                        std::to_string(divisors[rank].size()) + " divisors: each needs one.");
        for (std::size_t i = 0; i < tokens[rank].size(); i++) {
            const double yours = divisors[rank][i];
            const std::string said = to_string(tokens) + "for micro-batch " + std::to_string(i) +
                                     " of rank " + std::to_string(rank) + " you say " +
                                     number(yours);
            if (!(yours > 0))
                throw Wrong(said + ". A divisor should be positive: 0 / 0 is NaN.\n" + hint);
            if (tokens[rank][i] > 0 && !is_near(yours, right))
                throw Wrong(said + ", right is " + number(right) + ": with yours a token weighs " +
                            number(1 / (yours * ranks)) +
                            " in the averaged gradient, and it should weigh " + number(1 / all) +
                            ".\n" + cause_of_divisor(tokens, rank, i, yours) + hint);
        }
    }
    held();
}

void check_divisors() {
    check_divisors_of({{5, 3}, {2}, {3}},
                      "The case: two micro-batches on rank 0, one on the others.");
    check_divisors_of({{3, 9}}, "The case: one rank, whose two micro-batches are one batch.");
    check_divisors_of({{5, 3, 8}, {2}, {4, 9}},
                      "The case: three ranks with different numbers of micro-batches.");
}

// ---- Task afterwards

// Returns what a wrong factor tells, or "".
std::string cause_of_factor(const Tokens& tokens, double guess, std::size_t rank, double yours) {
    const double all = all_of(tokens), world = ranks_of(tokens);
    double own = 0;
    for (const int in_batch : tokens[rank])
        own += in_batch;
    if (is_near(yours, world / all))
        return "The losses have been divided by the guess already: undo that.\n";
    if (is_near(yours, guess / all))
        return "DDP has divided by the number of ranks, too.\n";
    if (is_near(yours, all / (guess * world)))
        return "That is the inverse: the gradient is multiplied by your factor.\n";
    if (is_near(yours, guess / own) || is_near(yours, guess * world / own))
        return "With a rank's own tokens the factor differs from rank to rank, and then the "
               "replicas drift apart.\n";
    return "";
}

void check_late_of(const Tokens& tokens, double guess, const std::string& hint) {
    const int ranks = ranks_of(tokens);
    const std::vector<double> factors =
        with_one_sum(ranks, 1, [&](int rank, const SumOverRanks& sum_over_ranks) {
            return late_factor(tokens[static_cast<std::size_t>(rank)], guess, ranks,
                               sum_over_ranks);
        });
    const double all = all_of(tokens);
    for (std::size_t rank = 0; rank < tokens.size(); rank++) {
        const std::string said = to_string(tokens) + "after a guess of " + number(guess) +
                                 " rank " + std::to_string(rank) + " says " + number(factors[rank]);
        if (!is_near(factors[rank], guess * ranks / all))
            throw Wrong(said + ", right is " + number(guess * ranks / all) + ".\n" +
                        cause_of_factor(tokens, guess, rank, factors[rank]) + hint);
    }
    held();
}

void check_afterwards() {
    check_late_of({{4, 2}, {8}}, 7, "The case: the guess was right, nothing has to change.");
    check_late_of({{5}, {2}}, 1, "The case: the losses are sums, since they were divided by 1.");
    check_late_of({{5, 3}, {2, 11}}, 2.5, "The case: two micro-batches on each of two ranks.");
}

// ---- Task no_tokens

void check_no_tokens() {
    const std::string hint = "The case: rank 0 has no token at all. It takes part, with zeros.";
    check_divisors_of({{0, 0}, {3, 0}, {1, 1}}, hint);
    check_late_of({{0}, {6, 0, 1}, {4, 4}}, 3, hint);
}

}  // namespace

std::vector<Task> tasks() {
    return {{"skew", check_skew},
            {"divisors", check_divisors},
            {"afterwards", check_afterwards},
            {"no_tokens", check_no_tokens}};
}

}  // namespace ddp::test
