#pragma once
// Numbers in words, in English and in Italian: sentences that need no file, and whose right
// translation is known for all of them.
#include <cstdint>
#include <string>

#include "20_transformer/words/pairs.hpp"

namespace ddp {

inline constexpr int numerals = 1'000'000;  // 0 .. 999,999 have words here

// Returns "twenty-one", "one thousand two hundred three": with a hyphen between tens and units, and
// without "and" and commas, as American English has it. Throws std::out_of_range for a number that
// has no words here.
std::string english_numeral(int number);

// Returns "ventuno", "milleduecentotré": one word, as Italian has it. Where two spellings are in
// use it is the one with all letters, ventunomila and centouno (not ventunmila, centuno), but
// centotto and centottanta (not centootto). A final -tre is accented in all numbers but 3. Throws
// std::out_of_range for a number that has no words here.
std::string italian_numeral(int number);

// Returns numbers in both languages, none of them twice. The numbers below 100, of which all others
// are made, are in `train`, which begins with them; the rest have three to six digits, and equally
// many have each (until the shorter ones run out). The order is random. Throws
// std::invalid_argument if a split is to have less than one pair, or if there are not as many
// numbers.
PairCorpus numeral_corpus(int train, int valid, int test, std::uint64_t seed);

}  // namespace ddp
