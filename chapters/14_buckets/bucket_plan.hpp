#pragma once
// Decides which gradient travels in which bucket, on the host and without data, by the rules of
// PyTorch's _compute_bucket_assignment_by_size and Reducer::rebuild_buckets (both in
// torch/csrc/distributed/c10d/reducer.cpp). Sparse gradients, which PyTorch puts into buckets of
// their own, do not occur in this book.
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
    // Every gradient begins at a multiple of this many bytes, a cache line: loops over it are
    // faster, and GPUs read 16 bytes at once only from multiples of 16. PyTorch leaves no gaps.
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

inline constexpr std::size_t unlimited_bucket = std::numeric_limits<std::size_t>::max();
inline constexpr std::size_t first_bucket_bytes = std::size_t{1} << 20;     // 1 MiB
inline constexpr std::size_t default_bucket_bytes = std::size_t{25} << 20;  // 25 MiB

// For each bucket the indices of its gradients.
using BucketAssignment = std::vector<std::vector<std::size_t>>;

// Assigns gradients to buckets, as the model lists them or in the order in which they are ready.
// `limits` are bytes: for the first bucket of a type, the second, and so on; the last is for all
// that follow. In the model's order the buckets are then sorted by their first gradients. Throws
// std::invalid_argument if there are no gradients or no limits, or if `ready_order` does not name
// each gradient once.
BucketAssignment assign_by_size(const GradientSizes& gradients,
                                const std::vector<std::size_t>& limits);
BucketAssignment assign_by_size(const GradientSizes& gradients,
                                const std::vector<std::size_t>& limits,
                                const std::vector<std::size_t>& ready_order);

// Returns the limits, in bytes, for PyTorch's bucket_cap_mb. Without a cap: 1 MiB for the first
// bucket and 25 MiB for the others. With a cap: that cap for all; 0 makes a bucket for each
// gradient. (So does PyTorch 2.15. In older versions the first bucket has 1 MiB in any case.)
std::vector<std::size_t> bucket_limits(std::optional<std::size_t> cap_bytes);

// Makes the plan of an assignment: gives every gradient its place, with a gap after it.
BucketPlan lay_out(const GradientSizes& gradients, BucketAssignment assignment);

// Makes the plan of the first iteration, in which the order is not known yet: one bucket for each
// element type. PyTorch applies limits to the model's order at once with find_unused_parameters,
// where no better plan will follow, and with its bucket_cap_mb_list. The list of buckets is then
// reversed, because the last layers' gradients are ready first. Throws as assign_by_size.
BucketPlan first_plan(const GradientSizes& gradients,
                      const std::vector<std::size_t>& limits = {unlimited_bucket});

// Makes the plan of all later iterations, by the order in which the gradients became ready in the
// first one. It is made once, and rank 0's plan is used on all ranks. Throws as assign_by_size.
BucketPlan rebuilt_plan(const GradientSizes& gradients, const std::vector<std::size_t>& limits,
                        const std::vector<std::size_t>& ready_order);

}  // namespace ddp
