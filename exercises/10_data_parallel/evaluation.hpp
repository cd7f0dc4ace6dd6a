#pragma once
// The contract of the exercise evaluation: how good a model is, by what each rank has seen of it.
#include <cmath>
#include <cstdint>
#include <vector>

#include "05_ranks/rank.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// counts[t * classes + p] samples of class t were taken for class p.
struct Confusion {
    int classes = 0;
    std::vector<std::int64_t> counts;
};

// Task confusion. The table of all ranks' samples, on every rank. All ranks call it together, with
// the same number of classes; a rank that has no samples, with zeros. Exact: the ranks of a long
// run have counted to billions.
Confusion confusion_of_all(Rank& rank, const Confusion& mine);

struct Scores {
    double accuracy = 0;     // the part of all samples that was named rightly
    double mean_recall = 0;  // over the classes that have samples: the part of a class's samples
                             // that was named rightly
};

// Task scores. Without any samples both are 0.
Scores scores_of(const Confusion& confusion);

// What is known of some numbers.
struct Spread {
    std::int64_t count = 0;
    double mean = 0;     // 0 if there are none
    double squares = 0;  // sum of the squared differences from the mean

    double standard_deviation() const {
        return count == 0 ? 0 : std::sqrt(squares / static_cast<double>(count));
    }
};

// Task spread. That of all ranks' numbers together, the same bits on every rank; some ranks may
// have none. All ranks call it together. As exact as the ranks' own are: to 9 digits also where the
// mean is a million times the standard deviation.
Spread spread_of_all(Rank& rank, const Spread& mine);

}  // namespace ddp
