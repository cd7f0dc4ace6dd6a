#pragma once
// Which gradient travels in which bucket: PyTorch's rules, on the host, without any data.
//
// They are those of _compute_bucket_assignment_by_size and of Reducer::rebuild_buckets (both in
// torch/csrc/distributed/c10d/reducer.cpp) and of DistributedDataParallel's constructor
// (torch/nn/parallel/distributed.py). Sparse gradients, which PyTorch puts into buckets of their
// own, do not occur in this book.
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "06_messages/call.hpp"

namespace ddp {

// What a plan knows of a gradient.
struct GradientSize {
    std::string name;  // its parameter's
    std::size_t elements = 0;
    ElementType type = ElementType::float32;

    std::size_t bytes() const { return elements * bytes_of(type); }
    bool operator==(const GradientSize&) const = default;
};
using GradientSizes = std::vector<GradientSize>;  // in the order in which the model lists them

struct BucketPlan {
    // Every gradient begins at a multiple of this many bytes, the line of a cache. PyTorch leaves
    // no gaps; but a loop over a gradient that lies across the lines reads two where one would do
    // (in the first-level cache that took a fifth more time), and GPUs read 16 bytes at once only
    // from multiples of 16.
    static constexpr std::size_t alignment = 64;

    struct Bucket {
        ElementType type = ElementType::float32;  // of all its gradients
        std::vector<std::size_t> gradients;       // in the order in which they lie
        std::size_t bytes = 0;  // of the gradients alone: what the rules, and PyTorch, count
        std::size_t size = 0;   // elements, with the gap behind each gradient: what is sent

        bool operator==(const Bucket&) const = default;
    };
    struct Place {
        std::size_t bucket = 0;
        std::size_t offset = 0;  // elements from the beginning of the bucket

        bool operator==(const Place&) const = default;
    };

    GradientSizes gradients;
    std::vector<Bucket> buckets;  // in the order in which they are reduced
    std::vector<Place> places;    // of each gradient

    // Of all buckets, gaps included: the same for every plan of these gradients.
    std::size_t memory_bytes() const;

    bool operator==(const BucketPlan&) const = default;
};

// ---- Rules ---------------------------------------------------------------------------------

inline constexpr std::size_t unlimited_bucket = std::numeric_limits<std::size_t>::max();
inline constexpr std::size_t first_bucket_bytes = std::size_t{1} << 20;     // 1 MiB
inline constexpr std::size_t default_bucket_bytes = std::size_t{25} << 20;  // 25 MiB

// For each bucket its gradients, numbered as in `gradients`.
using BucketAssignment = std::vector<std::vector<std::size_t>>;

// PyTorch's _compute_bucket_assignment_by_size:
//  - Gradients are taken one by one, as the model lists them or in the order in which they are
//    ready.
//  - Each goes into the open bucket of its element type; no bucket holds two types.
//  - The bucket is closed when it has reached its limit (>=). The gradient that crosses the limit
//    stays in, and none is ever split: a bucket may be larger than its limit.
//  - The first bucket of a type is held to limits[0], the next to limits[1], and so on; the last
//    limit holds for all that follow.
//  - What is open at the end is closed, too.
//  - In the model's order the buckets are then sorted by their first gradients. In ready order they
//    stand as they were closed, those closed at the end with the last type to appear first: so
//    PyTorch's hash map hands them out with GNU's library. (Any order will do that all ranks have.)
// `limits` are bytes. Throws std::invalid_argument if there are no gradients or no limits, or if
// `ready_order` does not name each gradient once.
BucketAssignment assign_by_size(const GradientSizes& gradients,
                                const std::vector<std::size_t>& limits);
BucketAssignment assign_by_size(const GradientSizes& gradients,
                                const std::vector<std::size_t>& limits,
                                const std::vector<std::size_t>& ready_order);

// The limits that bucket_cap_mb stands for. Not given: a first bucket of 1 MiB, which is soon full,
// so that the link soon has work, and 25 MiB for the others. Given: that for all of them; 0 is a
// bucket for each gradient. So it is in today's PyTorch. 1.13 gives the first bucket 1 MiB in any
// case, which we do not follow: below 1 MiB, who compares caps would compare something else.
std::vector<std::size_t> bucket_limits(std::optional<std::size_t> cap_bytes);

// The plan of the first iteration. The model's list need not be the order in which gradients are
// ready, so PyTorch does not try to overlap yet: one bucket for each element type. Only with
// find_unused_parameters, where no better plan will come, it takes the cap, and the list as it is.
// The last layers' gradients are ready first: the list of buckets is reversed in both cases. Throws
// as assign_by_size.
BucketPlan first_plan(const GradientSizes& gradients, std::optional<std::size_t> cap_bytes,
                      bool find_unused_parameters = false);

// The plan of all later iterations, by the order in which the gradients were ready in the first
// one. It is made once, and rank 0's holds for all. Throws as assign_by_size.
BucketPlan rebuilt_plan(const GradientSizes& gradients, std::optional<std::size_t> cap_bytes,
                        const std::vector<std::size_t>& ready_order);

// ---- From rank 0 to the others ---------------------------------------------------------------

// A text that decode_plan understands.
std::string encode_plan(const BucketPlan& plan);

// The plan in `text`, for `gradients`, those of this rank. Throws std::runtime_error with one
// sentence if the text is damaged, or if the plan is not for exactly these gradients, each once.
BucketPlan decode_plan(const std::string& text, const GradientSizes& gradients);

}  // namespace ddp
