#pragma once
// The contract of the exercise tied_buckets: which gradient is ready last, and what tying the
// tables of a transformer costs.
#include <cstddef>
#include <string>
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// One operation of forward, as the tape records it: the parameters that it uses, each once, in the
// order of its inputs. It may use none. A parameter may be used by several operations.
struct Operation {
    std::string name;
    std::vector<std::string> parameters;
};

// Task ready_order. Returns the parameters in the order in which backward makes their gradients
// final. Backward walks the operations from the last to the first. A gradient is final when the
// last operation that adds to it has been walked; of those that one operation makes final, the
// earlier input comes first.
std::vector<std::string> ready_order(const std::vector<Operation>& forward);

// A gradient, and the last bucket that they fill.
struct ReadyGradient {
    std::string name;
    std::size_t bytes;  // 1 or more
};
struct LastBucket {
    std::size_t index = 0;         // from 0
    std::size_t bytes = 0;         // of its gradients
    std::size_t bytes_before = 0;  // that can travel while backward still computes
    bool operator==(const LastBucket&) const = default;
};

// Task last_bucket. Returns the last bucket of these gradients (one or more), which are in ready
// order. Buckets are filled in this order by the rule of 14_buckets, all of them with the same
// limit: a bucket is closed when it has `cap_bytes` or more, the gradient that crosses the limit
// stays in, and the last bucket is closed with the last gradient. A bucket can travel when its last
// gradient is ready; backward computes until the last gradient of all is.
LastBucket last_bucket(const std::vector<ReadyGradient>& ready, std::size_t cap_bytes);

// Task tying. `untied` is the forward of a model, and `sizes` has its gradients, in any order. Now
// the parameters `tables`, one or more, which have the same size, become one parameter with all of
// their uses. One operation may use several of them. Returns the last bucket of the tied model.
LastBucket last_bucket_if_tied(const std::vector<Operation>& untied,
                               const std::vector<ReadyGradient>& sizes,
                               const std::vector<std::string>& tables, std::size_t cap_bytes);

}  // namespace ddp
