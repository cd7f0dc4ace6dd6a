#pragma once
// The gradient of one step, when the ranks have different numbers of tokens: with the two divisors,
// and as one rank would compute it from the whole batch.
#include <vector>

#include "20_transformer/translation_training.hpp"

namespace ddp {

struct UnevenTokens {
    std::vector<int> tokens;  // by rank
    // The distances of the averaged gradient from that of the whole batch, as shares of its length.
    double by_own_tokens = 0, by_all_tokens = 0;
};

// Makes one step's gradient three times, from a batch whose lengths are as they come. All ranks
// call it together.
UnevenTokens uneven_tokens(Rank& rank, const TranslationData& data, const TranslationPlan& plan);

// Prints a table of it.
void show_uneven_tokens(World& world, const TranslationData& data, const TranslationPlan& plan);

}  // namespace ddp
