// The exercise token_mean: what is a loss divided by? Read exercises/20_transformer/README.md
// first.
#include "exercises/20_transformer/token_mean.hpp"

#include <algorithm>
#include <numeric>

namespace ddp {
namespace {

// stub
// Returns the number of tokens of all ranks in this step.
double all_tokens(const std::vector<int>& own_tokens, const SumOverRanks& sum_over_ranks) {
    std::vector<double> tokens = {std::accumulate(own_tokens.begin(), own_tokens.end(), 0.0)};
    sum_over_ranks(tokens);
    return tokens[0];
}
// end stub
//: Helpers go here.

}  // namespace

double weight_skew(const std::vector<std::vector<int>>& tokens) {
    // stub: skew
    //: By what is the loss of one token divided, all in all?
    std::vector<double> divisors;
    for (const std::vector<int>& of_rank : tokens)
        for (const int in_batch : of_rank)
            divisors.push_back(static_cast<double>(in_batch) * static_cast<double>(of_rank.size()));
    const auto [heaviest, lightest] = std::ranges::minmax(divisors);
    return lightest / heaviest;
    // end stub
}

std::vector<double> token_divisors(const std::vector<int>& own_tokens, int world_size,
                                   const SumOverRanks& sum_over_ranks) {
    // stub: divisors
    //: Every token should weigh the same: how much, and what does DDP do to it?
    const double all = all_tokens(own_tokens, sum_over_ranks);
    const double divisor = all / world_size;
    return std::vector<double>(own_tokens.size(), divisor);
    // end stub
}

double late_factor(const std::vector<int>& own_tokens, double guess, int world_size,
                   const SumOverRanks& sum_over_ranks) {
    // stub: afterwards
    //: How much does a token weigh now, and how much should it weigh?
    const double all = all_tokens(own_tokens, sum_over_ranks);
    return guess * world_size / all;
    // end stub
}

}  // namespace ddp
