// The exercise best_cap: small buckets or large ones? Read exercises/14_buckets/README.md first.
#include "exercises/14_buckets/best_cap.hpp"

#include <algorithm>
#include <cmath>

namespace ddp {

double exposed_seconds(const BackwardPass& pass, int per_bucket) {
    // stub: exposed
    //: For each bucket: when is it ready, when can its all-reduce begin, when does it end?
    double end = 0;
    for (int first = 0; first < pass.gradients; first += per_bucket) {
        const int behind = std::min(first + per_bucket, pass.gradients);
        const double is_ready = pass.backward_s * behind / pass.gradients;
        const std::size_t bytes = pass.bytes * static_cast<std::size_t>(behind - first);
        end = std::max(end, is_ready) + pass.all_reduce.seconds(bytes);
    }
    return end - pass.backward_s;
    // end stub
}

double best_bucket_bytes(const BackwardPass& pass) {
    // stub: best
    //: Two cases: the link keeps up with backward, or buckets queue up in front of it.
    const double all = static_cast<double>(pass.bytes) * pass.gradients;
    const double alpha = pass.all_reduce.alpha_s, beta = pass.all_reduce.beta_s_per_byte;
    const double made = pass.backward_s / all;  // seconds in which backward computes a byte
    const double with_queue = std::sqrt(all * alpha / made);
    const double without = made > beta ? alpha / (made - beta) : all;
    return std::min({with_queue, without, all});
    // end stub
}

}  // namespace ddp
