#include "02_kernels/support/sum_orders.hpp"

#include <cmath>
#include <numeric>

namespace ddp {

float sum_forward(std::span<const float> values) {
    return std::accumulate(values.begin(), values.end(), 0.0f);
}

float sum_backward(std::span<const float> values) {
    return std::accumulate(values.rbegin(), values.rend(), 0.0f);
}

float sum_of_neighbours(std::vector<float> values) {
    for (std::size_t left = values.size(); left > 1; left = (left + 1) / 2) {
        for (std::size_t i = 0; i < left / 2; i++)
            values[i] = values[2 * i] + values[2 * i + 1];
        if (left % 2 == 1)
            values[left / 2] = values[left - 1];
    }
    return values.empty() ? 0.0f : values[0];
}

float sum_of_halves(std::vector<float> values) {
    for (std::size_t left = values.size(); left > 1; left = (left + 1) / 2)
        for (std::size_t i = 0; i < left / 2; i++)
            values[i] += values[i + (left + 1) / 2];
    return values.empty() ? 0.0f : values[0];
}

double sum_in_double(std::span<const float> values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
}

double error_in_last_places(float sum, double exact) {
    const auto nearest = std::abs(static_cast<float>(exact));
    return (static_cast<double>(sum) - exact) / (std::nextafter(nearest, INFINITY) - nearest);
}

}  // namespace ddp
