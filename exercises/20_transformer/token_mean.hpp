#pragma once
// Exercise token_mean: one mean over all tokens of a step, on all ranks.
//
//     rank 0    | 4 tokens | 2 tokens |       each token should weigh 1/14 in the gradient
//     rank 1    | 8 tokens |
//
// A rank goes forward and backward with one micro-batch after the other, and their gradients are
// added up. DistributedDataParallel averages at the end: it divides the ranks' sum by the number of
// ranks. The loss of a micro-batch is the sum over its tokens, divided by a number: the divisor.
//
// You may call: sum_over_ranks(numbers), an all-reduce of a std::vector<double>.
// The check also tries: one rank, up to three; different numbers of micro-batches; a rank that has
// no tokens at all.
#include <vector>

#include "exercises/not_implemented.hpp"
#include "exercises/sum_over_ranks.hpp"

namespace ddp {

// Task skew. Most programs divide by the tokens of the micro-batch, times the micro-batches of the
// rank. Returns how many times as much the heaviest token weighs as the lightest one: above it's 2.
// tokens[rank][i] is for micro-batch i of that rank, 1 or more.
double weight_skew(const std::vector<std::vector<int>>& tokens);

// Task divisors. Returns the divisor for each micro-batch of this rank. own_tokens[i] is for its
// micro-batch i, positive even where that has no tokens. Every rank calls sum_over_ranks once, with
// one number.
std::vector<double> token_divisors(const std::vector<int>& own_tokens, int world_size,
                                   const SumOverRanks& sum_over_ranks);

// Task afterwards. Every loss of every rank has been divided by `guess`, and DDP has averaged.
// Returns the factor that makes the gradients right. Every rank calls sum_over_ranks once, with one
// number.
double late_factor(const std::vector<int>& own_tokens, double guess, int world_size,
                   const SumOverRanks& sum_over_ranks);

}  // namespace ddp
