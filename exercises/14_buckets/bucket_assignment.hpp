#pragma once
// The contract of the exercise bucket_assignment: PyTorch's whole rule, including what the chapter
// leaves out; and the rule applied backwards.
#include <cstddef>
#include <vector>

#include "06_messages/call.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

struct ModelGradient {
    std::size_t elements;  // may be 0
    ElementType type;
    int device = 0;          // a model may be spread over several of a rank's devices
    bool is_sparse = false;  // of an embedding: it has only the rows that were used
};

// Task assignment. Returns for each bucket the indices of its gradients, which are taken in the
// order of `gradients`:
//  - a bucket holds gradients of one element type on one device;
//  - it is closed when it has reached its limit (>=), in bytes. The first bucket of a type and
//    device has limits[0], its next one limits[1], and so on; the last limit holds for all that
//    follow;
//  - a sparse gradient has a bucket of its own, and touches no limit and no open bucket;
//  - buckets that are open at the end are closed;
//  - finally the buckets are sorted by their first gradients.
// There is at least one gradient and one limit; no limit is 0.
std::vector<std::vector<std::size_t>> assign_buckets(const std::vector<ModelGradient>& gradients,
                                                     const std::vector<std::size_t>& limits);

// Task smallest_cap. Returns the smallest limit, 1 or more, with which there are at most `most`
// buckets; `most` is 1 or more. All gradients have one type, and there is one limit for all
// buckets. `bytes` are the gradients' sizes, at least one and none of them 0, in the order in which
// they are taken.
std::size_t smallest_cap(const std::vector<std::size_t>& bytes, std::size_t most);

}  // namespace ddp
