// The exercise tied_buckets: which gradient is ready last? Read exercises/20_transformer/README.md
// first.
#include "exercises/20_transformer/tied_buckets.hpp"

#include <algorithm>
#include <ranges>

namespace ddp {
namespace {

// stub
bool contains(const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
}
// end stub
//: Helpers go here.

}  // namespace

std::vector<std::string> ready_order(const std::vector<Operation>& forward) {
    // stub: ready_order
    //: When is the gradient of a parameter that is used twice final?
    // In the order of forward a parameter counts where it is used first.
    std::vector<std::string> seen;
    std::vector<std::vector<std::string>> final_at;  // by operation
    for (const Operation& operation : forward) {
        final_at.emplace_back();
        for (const std::string& parameter : operation.parameters) {
            if (contains(seen, parameter))
                continue;
            seen.push_back(parameter);
            final_at.back().push_back(parameter);
        }
    }
    std::vector<std::string> order;
    for (const auto& parameters : std::views::reverse(final_at))
        order.insert(order.end(), parameters.begin(), parameters.end());
    return order;
    // end stub
}

LastBucket last_bucket(const std::vector<ReadyGradient>& ready, std::size_t cap_bytes) {
    // stub: last_bucket
    //: Fill the buckets one after the other. What is known of the last one when it is begun?
    LastBucket bucket;
    for (const ReadyGradient& gradient : ready) {
        if (bucket.bytes > 0 && bucket.bytes >= cap_bytes) {
            bucket.bytes_before += bucket.bytes;
            bucket.bytes = 0;
            bucket.index++;
        }
        bucket.bytes += gradient.bytes;
    }
    return bucket;
    // end stub
}

LastBucket last_bucket_if_tied(const std::vector<Operation>& untied,
                               const std::vector<ReadyGradient>& sizes,
                               const std::vector<std::string>& tables, std::size_t cap_bytes) {
    // stub: tying
    //: How does the forward of the tied model look?
    std::vector<Operation> tied = untied;
    for (Operation& operation : tied)
        for (std::string& parameter : operation.parameters)
            if (contains(tables, parameter))
                parameter = tables[0];
    std::vector<ReadyGradient> ready;
    for (const std::string& name : ready_order(tied))
        ready.push_back(*std::ranges::find(sizes, name, &ReadyGradient::name));
    return last_bucket(ready, cap_bytes);
    // end stub
}

}  // namespace ddp
