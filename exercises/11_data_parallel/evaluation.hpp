#pragma once
// Exercise evaluation: how good is the model on the samples of all ranks?
//
//                taken for cat   for dog    recall
//     5 cats             4            1      4 / 5
//     1 dog              1            0      0 / 1
//
//     accuracy 4 / 6 = 0.67, mean recall (0.8 + 0) / 2 = 0.4
//
// You may call: rank.all_gather(x), with x a number, a struct of numbers or a std::string of bytes;
// std::memcpy().
// The check also tries: one rank, ranks and classes without samples, numbers far from 0.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "05_ranks/rank.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// A confusion matrix: counts[t * classes + p] samples of class t were predicted as class p.
struct Confusion {
    int classes = 0;
    std::vector<std::int64_t> counts;
};

// Task confusion. Returns the sum of all ranks' tables, on every rank.
Confusion confusion_of_all(Rank& rank, const Confusion& mine);

struct Scores {
    double accuracy = 0;     // correct predictions / samples
    double mean_recall = 0;  // of correct predictions / samples, over the classes with samples
};

// Task scores. Returns both scores of a table; 0 if it has no samples.
Scores scores_of(const Confusion& confusion);

// Describes some numbers without listing them.
struct Spread {
    std::int64_t count = 0;
    double mean = 0;     // 0 if there are none
    double squares = 0;  // sum of the squared differences from the mean

    double standard_deviation() const {
        return count == 0 ? 0 : std::sqrt(squares / static_cast<double>(count));
    }
};

// Task spread. Returns the spread of all ranks' numbers together, the same bits on every rank, and
// right to 9 digits, even if the mean is a million times the standard deviation.
Spread spread_of_all(Rank& rank, const Spread& mine);

}  // namespace ddp
