#pragma once
// What is reported of repeated measurements: the middle, how far they scatter, and the slow end.
#include <span>

namespace ddp {

// The value below which the share `p` (0 to 1) of the samples lies, interpolated linearly between
// neighbours in sorted order. Throws std::invalid_argument without samples or with p out of range.
double quantile(std::span<const double> samples, double p);

double median(std::span<const double> samples);

// Scatter: the interquartile range as a share of the median (0.05: the middle half lies within 5
// %). 0 if all samples are equal. Throws std::invalid_argument without samples.
double spread(std::span<const double> samples);

// The median of a[i] / b[i]: how many times as large a is as b, where round i measured both. What
// slows a whole round slows both, and drops out. Throws std::invalid_argument unless both have as
// many samples.
double median_ratio(std::span<const double> a, std::span<const double> b);

}  // namespace ddp
