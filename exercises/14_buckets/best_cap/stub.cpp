// The exercise best_cap: small buckets or large ones? Read exercises/14_buckets/README.md first.
#include "exercises/14_buckets/best_cap.hpp"

#include <algorithm>
#include <cmath>

namespace ddp {

double exposed_seconds(const BackwardPass& pass, int per_bucket) {
    // For each bucket: when is it ready, when can its all-reduce begin, when does it end?
    throw NotImplemented("exposed");
}

double best_bucket_bytes(const BackwardPass& pass) {
    // Two cases: the link keeps up with backward, or buckets queue up in front of it.
    throw NotImplemented("best");
}

}  // namespace ddp
