#pragma once
// Statistics of repeated measurements: the middle, the scatter, and the slow end.
#include <span>

namespace ddp {

// Returns the value below which the fraction `p` (0 to 1) of the samples lies, interpolated
// linearly between neighbours in sorted order. Throws std::invalid_argument without samples, or if
// p is out of range.
double quantile(std::span<const double> samples, double p);

// Returns the 0.5 quantile. Throws std::invalid_argument without samples.
double median(std::span<const double> samples);

// Returns the scatter of the samples: the interquartile range as a fraction of the median. With
// 0.05, the middle half of the samples spans 5 % of the median; 0 if all samples are equal. Throws
// std::invalid_argument without samples.
double spread(std::span<const double> samples);

// Returns the median of a[i] / b[i], where round i measured both: how many times as large a is as
// b. A disturbance that slows a whole round slows both and cancels out. Throws
// std::invalid_argument unless a and b have the same number of samples.
double median_ratio(std::span<const double> a, std::span<const double> b);

}  // namespace ddp
