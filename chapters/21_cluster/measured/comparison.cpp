#include "21_cluster/measured/comparison.hpp"

#include <cmath>

#include "common/report/units.hpp"

namespace ddp {

double Comparison::error() const {
    return unit.empty() ? (1 - predicted) / (1 - measured) - 1 : predicted / measured - 1;
}

std::vector<Comparison> all_comparisons() {
    std::vector<Comparison> all = comparisons_on_nodes();
    const std::vector<Comparison> published = comparisons_with_published();
    all.insert(all.end(), published.begin(), published.end());
    return all;
}

double mean_error(const std::string& kind, const std::vector<Comparison>& comparisons) {
    double sum = 0, count = 0;
    for (const Comparison& comparison : comparisons)
        if (comparison.kind == kind) {
            sum += std::abs(comparison.error());
            count++;
        }
    return sum / count;
}

std::string errors_of(const std::string& kind, const std::vector<Comparison>& comparisons) {
    int count = 0;
    double worst = 0;
    bool is_of_loss = false;
    for (const Comparison& comparison : comparisons)
        if (comparison.kind == kind) {
            const double error = comparison.error();
            count++;
            worst = std::abs(error) > std::abs(worst) ? error : worst;
            is_of_loss = comparison.unit.empty();
        }
    return "Error of " + kind + " (" + std::to_string(count) +
           " measured): " + format_percent(mean_error(kind, comparisons)) +
           (is_of_loss ? " of the loss" : "") + " on average, " + (worst > 0 ? "+" : "") +
           format_percent(worst) + " at worst.";
}

simulator::Step equal_buckets(double forward_s, double backward_s, int buckets, double bytes) {
    const simulator::Bucket bucket{backward_s / buckets, bytes / buckets};
    return {.forward_s = forward_s,
            .buckets = std::vector<simulator::Bucket>(static_cast<std::size_t>(buckets), bucket)};
}

}  // namespace ddp
