#pragma once
// Exercise bucket_assignment: PyTorch's whole rule, with devices and sparse gradients.
//
//     limits 400 and 800 bytes; float gradients of 40, 360, 40, 800, 4 and 4 bytes
//
//     bucket     bytes                   limit
//     [0 1]       40 + 360 = 400          400
//     [2 3]       40 + 800 = 840          800, and the gradient that reaches it stays in
//     [4 5]        4 + 4 = 8              800 again; closed at the end
//
// You may call: bytes_of(type), of one element.
// The check also tries: types and devices that take turns, sparse gradients between others.
#include <cstddef>
#include <vector>

#include "06_messages/call.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

struct ModelGradient {
    std::size_t elements;
    ElementType type;
    int device = 0;          // a model may be spread over several of a rank's devices
    bool is_sparse = false;  // of an embedding: it has the rows that were used
};

// Task assignment. Returns for each bucket the indices of its gradients, taken in their order:
//  - a bucket holds gradients of one element type on one device;
//  - it is closed when it has reached its limit (>=), in bytes. The first bucket of a type and
//    device has limits[0], its next one limits[1], and so on; the last limit holds for all that
//    follow;
//  - a sparse gradient has a bucket of its own, and touches no limit and no open bucket;
//  - buckets that are open at the end are closed;
//  - finally the buckets are sorted by their first gradients.
std::vector<std::vector<std::size_t>> assign_buckets(const std::vector<ModelGradient>& gradients,
                                                     const std::vector<std::size_t>& limits);

// Task smallest_cap. Returns the smallest limit, 1 or more, with which gradients of so many bytes
// are put into at most `most` buckets. They have one type, and all buckets have this limit.
std::size_t smallest_cap(const std::vector<std::size_t>& bytes, std::size_t most);

}  // namespace ddp
