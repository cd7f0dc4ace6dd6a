#pragma once
// Find five: a training program in the style of the tutorial (find_five.cpp) that has five
// mistakes, and the same program without them (five_mended.cpp). Both run without a complaint.
#include <string>
#include <vector>

#include "05_ranks/world.hpp"
#include "20_transformer/transformer.hpp"
#include "20_transformer/words/token_batches.hpp"

namespace ddp {

struct FivePlan {
    std::vector<TokenPair> pairs;
    TransformerOptions model;  // without dropout
    int epochs = 3;
    int batch = 16;  // sentences a rank and step
};

// The record of one rank. Nothing of it is printed by the two programs.
struct FiveSeen {
    std::string hash;                      // of the parameters, at the end
    double drift = 0;                      // the ranks' mean distance from rank 0's, as a share
    std::vector<std::vector<int>> orders;  // the sentences of each epoch, in their order
    std::vector<int> validated;            // the numbers of the pairs to validate with
    double printed_loss = 0;               // the last one that rank 0 has printed
    double own_loss = 0;                   // of the last epoch, on this rank
    double validating_s = 0, waiting_s = 0;
};

FiveSeen train_with_five_mistakes(Rank& rank, const FivePlan& plan);
FiveSeen train_mended(Rank& rank, const FivePlan& plan);

// ---- What both programs use

// The numbers of the pairs to learn from, nine of ten, and of the others.
struct RandomSplit {
    std::vector<int> train, valid;
};
RandomSplit random_split(std::size_t pairs, std::uint64_t seed);

// Returns these pairs in batches of `batch`, the last of which may be smaller.
std::vector<TokenBatch> batches_of(const std::vector<TokenPair>& pairs,
                                   const std::vector<int>& numbers, int batch);

// Returns the entries of `list` at these places.
std::vector<int> at_places(const std::vector<int>& list, const std::vector<int>& places);

// Returns the sum of the losses of all tokens in the batches, and the number of the tokens.
struct LossSum {
    double loss = 0;
    int tokens = 0;
};
LossSum validate(Device& device, Transformer& model, const std::vector<TokenBatch>& batches);

void print_epoch(int epoch, double loss, const LossSum& validation);

}  // namespace ddp
