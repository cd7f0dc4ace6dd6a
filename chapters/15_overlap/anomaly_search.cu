// The place of the first number that is none, over all buckets:
//
//     memory    | bucket 0          | bucket 1          |
//               | 0.1  0.2  NaN ... | 0.3  inf  ...     |
//                           ^ 2              ^ 7
//     first_    no place -> 2 (a search in bucket 0) -> still 2 (one in bucket 1: 7 is larger)
#include "15_overlap/anomaly_search.hpp"

#include <array>
#include <cfloat>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

constexpr unsigned long long no_place = std::numeric_limits<unsigned long long>::max();

__device__ bool is_finite(float value) {
    return fabsf(value) <= FLT_MAX;  // false for NaN as well
}

// Lowers *first to begin + the index of the first element that is not finite. There is hardly ever
// one, so each thread first makes a pass without branches, and only a thread that has found
// something makes a second one to find out where.
__global__ void find_not_finite(std::size_t n, const float* data, unsigned long long begin,
                                unsigned long long* first) {
    int found = 0;
    for (std::size_t i : grid_range(n))
        found |= !is_finite(data[i]);
    if (!found)
        return;
    for (std::size_t i : grid_range(n))
        if (!is_finite(data[i])) {
            // Several threads may find something: the first place in memory counts.
            atomicMin(first, begin + i);
            return;
        }
}

}  // namespace

AnomalySearch::AnomalySearch(Device& device, const FlatBuffers& gradients)
    : gradients_(gradients), first_(device, {1}) {
    forget();
}

// Only enqueues: what was found is read at the end of the step, so no bucket waits for the host.
void AnomalySearch::search(const Tensor& bucket, Stream& stream) {
    // Places count from the beginning of all buckets, so the lowest of all searches is kept.
    const auto begin = static_cast<unsigned long long>(bucket.data() - gradients_.bucket(0).data());
    launch(stream, grid_for(bucket.size()), find_not_finite, bucket.size(), bucket.data(), begin,
           first_.data());
}

void AnomalySearch::require_finite() {
    const unsigned long long found = first_.to_host()[0];
    if (found == no_place)
        return;
    forget();
    // Which gradient has this place?
    const float* memory = gradients_.bucket(0).data();
    for (std::size_t i = 0; i < gradients_.parameters().size(); i++) {
        const auto begin = static_cast<unsigned long long>(gradients_.view(i).data() - memory);
        const GradientSize& gradient = gradients_.plan().gradients[i];
        // Not up to the next gradient: the gap between belongs to none.
        if (found >= begin && found < begin + gradient.elements)
            throw std::runtime_error(
                "the gradient of '" + gradient.name + "' is infinite or no number at element " +
                std::to_string(found - begin) + " of " + std::to_string(gradient.elements) +
                ": the steps are too long, or the loss divides by zero");
    }
    throw std::runtime_error(
        "the gap after a gradient is infinite or no number: a kernel has written beyond its "
        "gradient");
}

// The next step begins without a place: larger than any that a search can find.
void AnomalySearch::forget() {
    first_.copy_from(std::array{no_place});
}

}  // namespace ddp
