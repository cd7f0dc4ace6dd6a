#pragma once
// The contract of the exercise token_mean: the mean over all tokens of a step, where ranks make
// several micro-batches and none knows how many tokens the others have.
//
// In a step each rank makes forward and backward of one or more micro-batches, one after the other.
// All but the last one run within no_sync, so their gradients add up on the rank. With the last one
// DistributedDataParallel averages: it divides the ranks' sum by their number. The loss of a
// micro-batch is the sum over its tokens (without padding), divided by a number: token_loss(logits,
// target, smoothing, divisor).
#include <vector>

#include "exercises/not_implemented.hpp"
#include "exercises/sum_over_ranks.hpp"

namespace ddp {

// Task skew. Returns how many times as much the heaviest token of a step weighs in its gradient as
// the lightest one, if programs do what is usual: each micro-batch's divisor is its own number of
// tokens times the number of micro-batches on its rank. tokens[rank][i] is the number of tokens in
// micro-batch i of that rank, 1 or more; ranks may have different numbers of micro-batches.
double weight_skew(const std::vector<std::vector<int>>& tokens);

// Task divisors. Returns what the loss of each of this rank's micro-batches is to be divided by, so
// that the step's gradient is that of the mean over all tokens of all ranks. own_tokens[i] is the
// number of tokens in micro-batch i of this rank; the other ranks' are not known here. A rank may
// have none, but not all ranks. Every rank calls sum_over_ranks once, with one number.
std::vector<double> token_divisors(const std::vector<int>& own_tokens, int world_size,
                                   const SumOverRanks& sum_over_ranks);

// Task afterwards. Does the same without a wait before the first backward: every loss of every rank
// has been divided by `guess`, the same positive number, and this is called when DDP has averaged.
// Returns the factor by which every rank should multiply its gradients then. Every rank calls
// sum_over_ranks once, with one number.
double late_factor(const std::vector<int>& own_tokens, double guess, int world_size,
                   const SumOverRanks& sum_over_ranks);

}  // namespace ddp
