#pragma once
// Exercise tied_buckets: what one table for all uses does to the last bucket.
//
//     forward          embedding: s    linear: w    linear: v    scores: t
//     final, in order  t  v  w  s                  s and t tied:  v  w  s
//
//     s and t have 900 bytes, w 300, v 200, the cap is 500
//     buckets          (t) (v w) (s)               s and t tied:  (v w) (s)
//     the last one     index 2, 900 bytes after 1400              index 1, 900 bytes after 500
//
// The check also tries: an operation that uses several parameters, or none; steps of the chapter's
// own model.
#include <cstddef>
#include <string>
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// One operation of forward: the parameters that it uses, each once, in the order of its inputs.
struct Operation {
    std::string name;
    std::vector<std::string> parameters;
};

// Task ready_order. Returns the parameters in the order in which their gradients are final.
// Backward walks the operations from the last to the first. Of the gradients that one operation
// makes final, the earlier input comes first.
std::vector<std::string> ready_order(const std::vector<Operation>& forward);

struct ReadyGradient {
    std::string name;
    std::size_t bytes;
};
struct LastBucket {
    std::size_t index = 0;         // from 0
    std::size_t bytes = 0;         // of its gradients
    std::size_t bytes_before = 0;  // in all buckets before it: they travel during backward
    bool operator==(const LastBucket&) const = default;
};

// Task last_bucket. Returns the last bucket of gradients in ready order. A bucket is closed when it
// has `cap_bytes` or more, with the gradient that crosses the limit; the last one is closed at the
// end.
LastBucket last_bucket(const std::vector<ReadyGradient>& ready, std::size_t cap_bytes);

// Task tying. Returns the last bucket if the parameters `tables`, all of one size, become one
// parameter with all of their uses. `sizes` has all gradients of the untied model, in any order.
LastBucket last_bucket_if_tied(const std::vector<Operation>& untied,
                               const std::vector<ReadyGradient>& sizes,
                               const std::vector<std::string>& tables, std::size_t cap_bytes);

}  // namespace ddp
