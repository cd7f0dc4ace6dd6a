#pragma once
// The contract of the exercise evaluation: how good a model is on the samples of all ranks.
#include <cmath>
#include <cstdint>
#include <vector>

#include "05_ranks/rank.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// A confusion matrix: counts[t * classes + p] samples of class t were predicted as class p.
struct Confusion {
    int classes = 0;
    std::vector<std::int64_t> counts;
};

// Task confusion. Returns the sum of all ranks' tables, on every rank. All ranks call it together,
// with the same number of classes; a rank without samples passes zeros.
Confusion confusion_of_all(Rank& rank, const Confusion& mine);

struct Scores {
    double accuracy = 0;  // correct predictions / samples
    // A class's recall is its correct predictions / its samples. The mean is over the classes that
    // have samples.
    double mean_recall = 0;
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

// Task spread. Returns the spread of all ranks' numbers together, the same bits on every rank. It
// is right to 9 digits, even if the mean is a million times the standard deviation. Some ranks may
// have no numbers. All ranks call it together.
Spread spread_of_all(Rank& rank, const Spread& mine);

}  // namespace ddp
