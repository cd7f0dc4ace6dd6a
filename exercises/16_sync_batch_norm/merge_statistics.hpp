#pragma once
// The contract of the exercise merge_statistics: mean and variance of values that come one by one,
// of parts that are put together, and of what is left when a part is taken away.
#include "exercises/not_implemented.hpp"

namespace ddp {

// The variance is m2 / count, or m2 / (count - 1). All 0 where there is no value.
struct Statistics {
    double count = 0;
    double mean = 0;
    double m2 = 0;  // the sum of squared distances from the mean
};

// All of these lose no more digits than they must, even where the mean is a thousand million times
// as large as the distances from it.

// Task add. One value more. Nobody keeps the values.
void add(Statistics& statistics, double value);

// Task merge. Of the values of `a` and those of `b` together; either may have none.
Statistics merged(const Statistics& a, const Statistics& b);

// Task without. The other way: of the values of `all` but for those of `part`, which are among
// them. Exactly nothing, if part is all.
Statistics without(const Statistics& all, const Statistics& part);

}  // namespace ddp
