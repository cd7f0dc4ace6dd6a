// The exercise bucket_assignment: which gradient goes where. Read exercises/14_buckets/README.md
// first.
#include "exercises/14_buckets/bucket_assignment.hpp"

#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

namespace ddp {
namespace {

// Helpers go here.

}  // namespace

std::vector<std::vector<std::size_t>> assign_buckets(const std::vector<ModelGradient>& gradients,
                                                     const std::vector<std::size_t>& limits) {
    // Which buckets can be open at the same time?
    throw NotImplemented("assignment");
}

std::size_t smallest_cap(const std::vector<std::size_t>& bytes, std::size_t most) {
    // How does the number of buckets change when the limit grows?
    throw NotImplemented("smallest_cap");
}

}  // namespace ddp
