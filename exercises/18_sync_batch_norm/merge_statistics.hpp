#pragma once
// Exercise merge_statistics: mean and variance from three numbers, which can be merged.
//
//     1 3      count 2, mean 2, m2 2       (1 - 2)² + (3 - 2)²
//     5        count 1, mean 5, m2 0
//     1 3 5    count 3, mean 3, m2 8       a merge of the two, without the values
//
// The check also tries: values around 1e9 at distances of about 1, where nothing may get lost.
#include "exercises/not_implemented.hpp"

namespace ddp {

// The statistics of a set of values. The variance is m2 / count, or m2 / (count - 1).
struct Statistics {
    double count = 0;
    double mean = 0;
    double m2 = 0;  // the sum of squared distances from the mean: never below 0
};

// Task add. Adds one value, which is not kept.
void add(Statistics& statistics, double value);

// Task merge. Returns the statistics of the values of `a` and `b` together; neither is empty.
Statistics merged(const Statistics& a, const Statistics& b);

// Task without. Returns the statistics of the values of `all` without those of `part`, which are
// fewer.
Statistics without(const Statistics& all, const Statistics& part);

}  // namespace ddp
