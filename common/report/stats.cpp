#include "common/report/stats.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

namespace ddp {

double quantile(std::span<const double> samples, double p) {
    if (samples.empty())
        throw std::invalid_argument("A quantile needs at least one sample: measure first.");
    if (!(p >= 0 && p <= 1))
        throw std::invalid_argument("A quantile lies between 0 and 1, not at " + std::to_string(p) +
                                    ": give 0.99 for the 99th percentile.");
    std::vector<double> sorted(samples.begin(), samples.end());
    std::sort(sorted.begin(), sorted.end());
    const double place = p * static_cast<double>(sorted.size() - 1);
    const std::size_t below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

double median(std::span<const double> samples) {
    return quantile(samples, 0.5);
}

double spread(std::span<const double> samples) {
    const double range = quantile(samples, 0.75) - quantile(samples, 0.25);
    return range == 0 ? 0 : range / std::abs(median(samples));
}

double median_ratio(std::span<const double> a, std::span<const double> b) {
    if (a.size() != b.size())
        throw std::invalid_argument("Ratios need pairs, but there are " + std::to_string(a.size()) +
                                    " and " + std::to_string(b.size()) +
                                    " samples: measure both in every round.");
    std::vector<double> ratios;
    for (std::size_t i = 0; i < a.size(); i++)
        ratios.push_back(a[i] / b[i]);
    return median(ratios);
}

}  // namespace ddp
