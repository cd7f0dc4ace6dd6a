// The exercise token_mean: what is a loss divided by? Read exercises/20_transformer/README.md
// first.
#include "exercises/20_transformer/token_mean.hpp"

#include <algorithm>
#include <numeric>

namespace ddp {
namespace {

// Helpers go here.

}  // namespace

double weight_skew(const std::vector<std::vector<int>>& tokens) {
    // By what is the loss of one token divided, all in all?
    throw NotImplemented("skew");
}

std::vector<double> token_divisors(const std::vector<int>& own_tokens, int world_size,
                                   const SumOverRanks& sum_over_ranks) {
    // Every token should weigh the same: how much, and what does DDP do to it?
    throw NotImplemented("divisors");
}

double late_factor(const std::vector<int>& own_tokens, double guess, int world_size,
                   const SumOverRanks& sum_over_ranks) {
    // How much does a token weigh now, and how much should it weigh?
    throw NotImplemented("afterwards");
}

}  // namespace ddp
