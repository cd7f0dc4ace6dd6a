#pragma once
// The contract of the exercise merge_statistics: mean and variance of values that come one by one,
// of two sets that are merged, and of the rest when one set is taken out.
#include "exercises/not_implemented.hpp"

namespace ddp {

// The statistics of a set of values. The variance is m2 / count, or m2 / (count - 1). All numbers
// are 0 if the set is empty.
struct Statistics {
    double count = 0;
    double mean = 0;
    double m2 = 0;  // the sum of squared distances from the mean: never below 0
};

// None of these functions may lose more digits than necessary, even where the mean is a thousand
// million times as large as the distances from it.

// Task add. Adds one value, which is not kept.
void add(Statistics& statistics, double value);

// Task merge. Returns the statistics of the values of `a` and `b` together; either may be empty.
Statistics merged(const Statistics& a, const Statistics& b);

// Task without. Returns the statistics of the values of `all` without those of `part`, which are
// among them. If `part` has all of them, every number is exactly 0.
Statistics without(const Statistics& all, const Statistics& part);

}  // namespace ddp
