#pragma once
// Decides which gradient travels in which bucket, by PyTorch's rules, on the host and without data.
//
// The rules are those of _compute_bucket_assignment_by_size and of Reducer::rebuild_buckets (both
// in torch/csrc/distributed/c10d/reducer.cpp) and of DistributedDataParallel's constructor
// (torch/nn/parallel/distributed.py). Sparse gradients, which PyTorch puts into buckets of their
// own, do not occur in this book.
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "06_messages/call.hpp"

namespace ddp {

// All that a plan needs to know about a gradient.
struct GradientSize {
    std::string name;  // of its parameter
    std::size_t elements = 0;
    ElementType type = ElementType::float32;

    std::size_t bytes() const { return elements * bytes_of(type); }
    bool operator==(const GradientSize&) const = default;
};
using GradientSizes = std::vector<GradientSize>;  // in the order in which the model lists them

struct BucketPlan {
    // Every gradient begins at a multiple of this many bytes, a cache line. PyTorch leaves no gaps.
    // But a loop over a gradient that is not aligned with the lines reads two lines where one would
    // do (in the first-level cache that took a fifth more time), and GPUs read 16 bytes at once
    // only from multiples of 16.
    static constexpr std::size_t alignment = 64;

    struct Bucket {
        ElementType type = ElementType::float32;  // of all its gradients
        std::vector<std::size_t> gradients;       // indices, in the order of their places
        std::size_t bytes = 0;  // of the gradients alone: the rules count these, as PyTorch does
        std::size_t size = 0;   // elements to be sent, with the gap after each gradient

        bool operator==(const Bucket&) const = default;
    };
    struct Place {
        std::size_t bucket = 0;
        std::size_t offset = 0;  // elements from the beginning of the bucket

        bool operator==(const Place&) const = default;
    };

    GradientSizes gradients;
    std::vector<Bucket> buckets;  // in the order in which they are reduced
    std::vector<Place> places;    // by gradient

    // Returns the bytes of all buckets with their gaps: the same for every plan of these gradients.
    std::size_t memory_bytes() const;

    bool operator==(const BucketPlan&) const = default;
};

// ---- Rules

inline constexpr std::size_t unlimited_bucket = std::numeric_limits<std::size_t>::max();
inline constexpr std::size_t first_bucket_bytes = std::size_t{1} << 20;     // 1 MiB
inline constexpr std::size_t default_bucket_bytes = std::size_t{25} << 20;  // 25 MiB

// For each bucket the indices of its gradients.
using BucketAssignment = std::vector<std::vector<std::size_t>>;

// Assigns gradients to buckets as PyTorch's _compute_bucket_assignment_by_size does:
//  - Gradients are taken one by one, as the model lists them or in the order in which they are
//    ready.
//  - Each goes into the open bucket of its element type; no bucket holds two types.
//  - The bucket is closed when it has reached its limit (>=). The gradient that crosses the limit
//    stays in, and none is ever split: a bucket may be larger than its limit.
//  - The first bucket of a type is held to limits[0], the next to limits[1], and so on; the last
//    limit holds for all that follow.
//  - Buckets that are still open at the end are closed.
//  - In the model's order the buckets are then sorted by their first gradients. In ready order they
//    keep the order in which they were closed, those closed at the end with the last type to appear
//    first: in this order PyTorch's hash map returns them, with GNU's library. (Any order would do,
//    if it is the same on all ranks.)
// `limits` are bytes. Throws std::invalid_argument if there are no gradients or no limits, or if
// `ready_order` does not name each gradient once.
BucketAssignment assign_by_size(const GradientSizes& gradients,
                                const std::vector<std::size_t>& limits);
BucketAssignment assign_by_size(const GradientSizes& gradients,
                                const std::vector<std::size_t>& limits,
                                const std::vector<std::size_t>& ready_order);

// Returns the limits, in bytes, for PyTorch's bucket_cap_mb. Without a cap: 1 MiB for the first
// bucket, which is full early and gives the link work early, and 25 MiB for the others. With a cap:
// that cap for all buckets; 0 makes a bucket for each gradient. PyTorch 2.15 does the same. 1.13
// gives the first bucket 1 MiB in any case; the book does not follow it, since a comparison of caps
// below 1 MiB would then compare something else.
std::vector<std::size_t> bucket_limits(std::optional<std::size_t> cap_bytes);

// Makes the plan of an assignment: gives every gradient its place, with a gap after it.
BucketPlan lay_out(const GradientSizes& gradients, BucketAssignment assignment);

// Makes the plan of the first iteration. Gradients need not become ready in the model's order, so
// PyTorch does not try to overlap yet: it makes one bucket for each element type. Only with
// find_unused_parameters, where no better plan will follow, it applies the cap to the model's order
// at once. In both cases the list of buckets is reversed, because the last layers' gradients are
// ready first. Throws as assign_by_size.
BucketPlan first_plan(const GradientSizes& gradients, std::optional<std::size_t> cap_bytes,
                      bool find_unused_parameters = false);
// Returns it for PyTorch's bucket_cap_mb_list, a limit for each bucket, which holds at once.
BucketPlan first_plan(const GradientSizes& gradients, const std::vector<std::size_t>& limits);

// Makes the plan of all later iterations, by the order in which the gradients became ready in the
// first one. It is made once, and rank 0's plan is used on all ranks. Throws as assign_by_size.
BucketPlan rebuilt_plan(const GradientSizes& gradients, std::optional<std::size_t> cap_bytes,
                        const std::vector<std::size_t>& ready_order);
BucketPlan rebuilt_plan(const GradientSizes& gradients, const std::vector<std::size_t>& limits,
                        const std::vector<std::size_t>& ready_order);

// ---- From rank 0 to the other ranks (plan_text.cpp)

// Returns the plan as a text for decode_plan.
std::string encode_plan(const BucketPlan& plan);

// Returns the plan in `text`, for this rank's own `gradients`. Throws std::runtime_error with one
// sentence if the text is damaged, or if the plan does not have exactly these gradients, each once.
BucketPlan decode_plan(const std::string& text, const GradientSizes& gradients);

}  // namespace ddp
