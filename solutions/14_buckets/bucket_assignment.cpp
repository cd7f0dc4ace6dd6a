// The exercise bucket_assignment: which gradient goes where. Read exercises/14_buckets/README.md
// first.
#include "exercises/14_buckets/bucket_assignment.hpp"

#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

namespace ddp {
namespace {

// stub
// The bucket of one type on one device that is being filled.
struct Open {
    std::vector<std::size_t> gradients;
    std::size_t bytes = 0;
    std::size_t limit = 0;  // index into the limits
};

std::size_t buckets_with(const std::vector<std::size_t>& bytes, std::size_t cap) {
    std::size_t closed = 0, open = 0;
    for (const std::size_t size : bytes) {
        open += size;
        if (open >= cap) {
            closed++;
            open = 0;
        }
    }
    return closed + (open > 0 ? 1 : 0);
}
// end stub
//: Helpers go here.

}  // namespace

std::vector<std::vector<std::size_t>> assign_buckets(const std::vector<ModelGradient>& gradients,
                                                     const std::vector<std::size_t>& limits) {
    // stub: assignment
    //: Which buckets can be open at the same time?
    std::vector<std::vector<std::size_t>> closed;
    std::map<std::pair<ElementType, int>, Open> open;
    for (std::size_t i = 0; i < gradients.size(); i++) {
        const ModelGradient& gradient = gradients[i];
        if (gradient.is_sparse) {
            closed.push_back({i});
            continue;
        }
        Open& bucket = open[{gradient.type, gradient.device}];
        bucket.gradients.push_back(i);
        bucket.bytes += gradient.elements * bytes_of(gradient.type);
        if (bucket.bytes < limits[std::min(bucket.limit, limits.size() - 1)])
            continue;
        closed.push_back(std::move(bucket.gradients));
        bucket = {{}, 0, bucket.limit + 1};
    }
    for (auto& [key, bucket] : open)
        if (!bucket.gradients.empty())
            closed.push_back(std::move(bucket.gradients));
    std::ranges::sort(closed);
    return closed;
    // end stub
}

std::size_t smallest_cap(const std::vector<std::size_t>& bytes, std::size_t most) {
    // stub: smallest_cap
    //: How does the number of buckets change when the limit grows?
    std::size_t all = 0;
    for (const std::size_t size : bytes)
        all += size;
    const auto caps = std::views::iota(std::size_t{1}, all + 1);
    const auto are_too_many = [&](std::size_t cap) { return buckets_with(bytes, cap) > most; };
    return *std::ranges::partition_point(caps, are_too_many);
    // end stub
}

}  // namespace ddp
