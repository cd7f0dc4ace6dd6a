// The exercise token_mean: what each token weighs in the averaged gradient.
#include "exercises/20_transformer/token_mean.hpp"

#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>

#include "exercises/support/sums.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Tokens = std::vector<std::vector<int>>;  // [rank][micro-batch]

double sum_of(const std::vector<int>& own_tokens) {
    return std::accumulate(own_tokens.begin(), own_tokens.end(), 0.0);
}
double sum_of(const Tokens& tokens) {
    double all = 0;
    for (const std::vector<int>& own : tokens)
        all += sum_of(own);
    return all;
}

std::string number(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}
std::string to_string(const Tokens& tokens) {
    std::string text = "Ranks with micro-batches of ";
    for (const std::vector<int>& own : tokens) {
        text += &own == &tokens[0] ? "(" : ", (";
        for (std::size_t i = 0; i < own.size(); i++)
            text += (i == 0 ? "" : ", ") + std::to_string(own[i]);
        text += ")";
    }
    return text + " tokens: ";
}

bool is_near(double yours, double right) {
    return std::abs(yours - right) <= 1e-9 * std::abs(right);
}

// A result that is wrong, and what the student is told.
struct Cause {
    double wrong;
    const char* words;
};
void require_near(double yours, double right, const std::string& what,
                  const std::vector<Cause>& causes) {
    if (is_near(yours, right))
        return;
    std::string told = what + " you say " + number(yours) + ", right is " + number(right) + ".";
    for (const auto& [wrong, words] : causes)
        if (is_near(yours, wrong))
            throw Wrong(told + "\n" + words);
    throw Wrong(told);
}

void check_skew() {
    struct Case {
        Tokens tokens;
        double right, whole, of_batches, of_ranks;
    };
    const Case cases[] = {{{{12}, {5}}, 12.0 / 5, 2, 0, 0},
                          {{{4, 2}, {8}}, 2, 0, 4, 8.0 / 6},
                          {{{6}}, 1, 0, 0, 0},
                          {{{7, 2, 9}, {3}, {11}}, 27.0 / 3, 0, 11.0 / 2, 18.0 / 3}};
    for (const auto& [tokens, right, whole, of_batches, of_ranks] : cases)
        require_near(
            weight_skew(tokens), right,
            to_string(tokens) + "the heaviest token weighs how many times the lightest?",
            {{1 / right, "That's the lightest by the heaviest: a small micro-batch weighs most."},
             {whole, "You say a whole number: int divided by int drops the rest in C++."},
             {of_batches,
              "A rank with fewer micro-batches divides by fewer: its tokens weigh more."},
             {of_ranks,
              "You compare the ranks' numbers of tokens. But a mean is taken over a "
              "micro-batch."}});
}

void check_divisors() {
    for (const Tokens& tokens :
         {Tokens{{5, 3}, {2}, {3}}, {{3, 9}}, {{5, 3, 8}, {2}, {4, 9}}, {{0, 0}, {3, 0}, {1, 1}}}) {
        const int ranks = static_cast<int>(tokens.size());
        const auto divisors = with_one_sum(ranks, 1, [&](int rank, const SumOverRanks& sum) {
            return token_divisors(tokens[static_cast<std::size_t>(rank)], ranks, sum);
        });
        const double all = sum_of(tokens);
        for (std::size_t rank = 0; rank < tokens.size(); rank++) {
            const std::string what = to_string(tokens) + "on rank " + std::to_string(rank);
            const double own = sum_of(tokens[rank]),
                         batches = static_cast<double>(tokens[rank].size());
            if (divisors[rank].size() != tokens[rank].size())
                throw Wrong(what + " you return " + std::to_string(divisors[rank].size()) +
                            " divisors.");
            for (std::size_t i = 0; i < tokens[rank].size(); i++) {
                if (tokens[rank][i] == 0 && divisors[rank][i] > 0)
                    continue;
                require_near(
                    divisors[rank][i], all / ranks, what + " for micro-batch " + std::to_string(i),
                    {{all, "That's for all tokens, and DDP divides by the number of ranks, too."},
                     {own / ranks, "These are the rank's own tokens: where are the others'?"},
                     {tokens[rank][i] * batches,
                      "That is the micro-batch's own mean: a token of a short one weighs more."},
                     {all / ranks * batches,
                      "The number of micro-batches doesn't matter: their gradients are added."}});
            }
        }
    }
}

void check_afterwards() {
    const std::pair<Tokens, double> cases[] = {
        {{{4, 2}, {8}}, 7}, {{{5}, {2}}, 1}, {{{5, 3}, {2, 11}}, 2.5}, {{{0}, {6, 0, 1}, {4}}, 3}};
    for (const auto& [tokens, guess] : cases) {
        const int ranks = static_cast<int>(tokens.size());
        const auto factors = with_one_sum(
            ranks, 1, [&, by = guess, &all = tokens](int rank, const SumOverRanks& sum) {
                return late_factor(all[static_cast<std::size_t>(rank)], by, ranks, sum);
            });
        const double all = sum_of(tokens);
        for (std::size_t rank = 0; rank < tokens.size(); rank++)
            require_near(
                factors[rank], guess * ranks / all,
                to_string(tokens) + "after a guess of " + number(guess) + " on rank " +
                    std::to_string(rank),
                {{ranks / all, "The losses have been divided by the guess already: undo that."},
                 {guess / all, "DDP has divided by the number of ranks, too."},
                 {all / (guess * ranks), "That is the inverse: gradients are multiplied by it."},
                 {guess / sum_of(tokens[rank]),
                  "With a rank's own tokens the factor differs from rank to rank, and then the "
                  "replicas drift apart."}});
    }
}

}  // namespace

std::vector<Task> tasks() {
    return {{"skew", check_skew}, {"divisors", check_divisors}, {"afterwards", check_afterwards}};
}

}  // namespace ddp::test
