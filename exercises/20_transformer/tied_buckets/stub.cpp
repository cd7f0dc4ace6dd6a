// The exercise tied_buckets: which gradient is ready last? Read exercises/20_transformer/README.md
// first.
#include "exercises/20_transformer/tied_buckets.hpp"

#include <algorithm>
#include <ranges>

namespace ddp {
namespace {

// Helpers go here.

}  // namespace

std::vector<std::string> ready_order(const std::vector<Operation>& forward) {
    // When is the gradient of a parameter that is used twice final?
    throw NotImplemented("ready_order");
}

LastBucket last_bucket(const std::vector<ReadyGradient>& ready, std::size_t cap_bytes) {
    // Fill the buckets one after the other. What is known of the last one when it is begun?
    throw NotImplemented("last_bucket");
}

LastBucket last_bucket_if_tied(const std::vector<Operation>& untied,
                               const std::vector<ReadyGradient>& sizes,
                               const std::vector<std::string>& tables, std::size_t cap_bytes) {
    // How does the forward of the tied model look?
    throw NotImplemented("tying");
}

}  // namespace ddp
