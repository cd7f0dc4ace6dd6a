// The rule on eight layers of 512 (a weight is 1 MiB, a bias 2 KiB), limits 1 MiB and then 25 MiB.
// Backward makes the gradients in this order; a bucket is closed when it has reached its limit:
//
//     gradient         bias8   weight8 | bias7   weight7   bias6  ...   weight1
//     open bucket      2 KiB   1 MiB + | 2 KiB   1 MiB +   ...          7 MiB +
//     its limit        1 MiB   1 MiB   | 25 MiB  25 MiB    ...          25 MiB
//                              closed  |                                closed: the end
//     bucket           0       0       | 1       1         1            1
//
// A plan is made in two steps: the rule assigns gradients to buckets, and the layout gives each
// gradient its place. It is made twice: before the first step, when the order is unknown, and after
// it, by the order that backward has shown.
#include "14_buckets/bucket_plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "14_buckets/plan_text.hpp"

namespace ddp {

// ---- Rules

namespace {

// The bucket of one element type that is being filled.
struct OpenBucket {
    ElementType type;
    std::vector<std::size_t> gradients = {};
    std::size_t bytes = 0;
    std::size_t limit = 0;  // index into the limits: each type counts its own buckets
};

// Returns the open bucket of this type; opens one if there is none.
OpenBucket& open_bucket_of(std::vector<OpenBucket>& open, ElementType type) {
    const auto known = std::ranges::find(open, type, &OpenBucket::type);
    return known != open.end() ? *known : open.emplace_back(OpenBucket{type});
}

// The rule itself: fills buckets in the given order, and returns them in the order in which they
// are closed.
BucketAssignment fill_buckets(const GradientSizes& gradients,
                              const std::vector<std::size_t>& limits,
                              const std::vector<std::size_t>& order) {
    require_sound(gradients, limits, order);
    BucketAssignment closed;
    std::vector<OpenBucket> open;  // one for each type, in the order in which the types appeared
    for (const std::size_t i : order) {
        // Open: find the bucket of this type that is being filled, or begin one.
        OpenBucket& bucket = open_bucket_of(open, gradients[i].type);
        // Fill.
        bucket.gradients.push_back(i);
        bucket.bytes += gradients[i].bytes();
        if (bucket.bytes < limits[bucket.limit])
            continue;
        // Close. The gradient that has crossed the limit stays in: gradients are never cut.
        closed.push_back(std::exchange(bucket.gradients, {}));
        // The next bucket of this type begins empty, with the next limit or again the last one.
        bucket.bytes = 0;
        bucket.limit = std::min(bucket.limit + 1, limits.size() - 1);
    }
    // Buckets that are still open are closed, the last type to appear first: PyTorch's order.
    for (auto bucket = open.rbegin(); bucket != open.rend(); ++bucket)
        if (!bucket->gradients.empty())
            closed.push_back(std::move(bucket->gradients));
    return closed;
}

}  // namespace

// In the model's order. PyTorch sorts the result, because its hash map has no order of its own.
BucketAssignment assign_by_size(const GradientSizes& gradients,
                                const std::vector<std::size_t>& limits) {
    std::vector<std::size_t> order(gradients.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    BucketAssignment buckets = fill_buckets(gradients, limits, order);
    std::ranges::sort(buckets, {}, [](const auto& bucket) { return bucket.front(); });
    return buckets;
}

// In ready order: the order in which buckets are closed is kept.
BucketAssignment assign_by_size(const GradientSizes& gradients,
                                const std::vector<std::size_t>& limits,
                                const std::vector<std::size_t>& ready_order) {
    return fill_buckets(gradients, limits, ready_order);
}

// A small first bucket gives the link work early in backward.
std::vector<std::size_t> bucket_limits(std::optional<std::size_t> cap_bytes) {
    if (cap_bytes)  // one limit for all buckets, the first included, as in PyTorch 2.15
        return {*cap_bytes};
    return {first_bucket_bytes, default_bucket_bytes};
}

// ---- Layout

BucketPlan lay_out(const GradientSizes& gradients, BucketAssignment assignment) {
    BucketPlan plan{gradients, {}, std::vector<BucketPlan::Place>(gradients.size())};
    for (std::vector<std::size_t>& indices : assignment) {
        // No bucket mixes types: its first gradient has the type of all.
        BucketPlan::Bucket bucket{gradients[indices.front()].type, std::move(indices)};
        for (const std::size_t i : bucket.gradients) {
            // A bucket has one element type, so offsets count elements.
            plan.places[i] = {plan.buckets.size(), bucket.size};
            // The limit counts the gradients' own bytes; the memory also has the gaps.
            bucket.bytes += gradients[i].bytes();
            constexpr std::size_t line = BucketPlan::alignment;
            bucket.size += (gradients[i].bytes() + line - 1) / line * line / bytes_of(bucket.type);
        }
        plan.buckets.push_back(std::move(bucket));
    }
    return plan;
}

std::size_t BucketPlan::memory_bytes() const {
    std::size_t bytes = 0;
    for (const Bucket& bucket : buckets)
        bytes += bucket.size * bytes_of(bucket.type);
    return bytes;
}

// ---- Plans

// Before the first step nothing is known of the order, so everything waits in one bucket for each
// type, unless there are limits already.
BucketPlan first_plan(const GradientSizes& gradients, const std::vector<std::size_t>& limits) {
    BucketAssignment buckets = assign_by_size(gradients, limits);
    std::ranges::reverse(buckets);  // backward begins at the last layers
    return lay_out(gradients, std::move(buckets));
}

// Now the order is known, and the first bucket is the one that is ready first.
BucketPlan rebuilt_plan(const GradientSizes& gradients, const std::vector<std::size_t>& limits,
                        const std::vector<std::size_t>& ready_order) {
    return lay_out(gradients, assign_by_size(gradients, limits, ready_order));
}

}  // namespace ddp
