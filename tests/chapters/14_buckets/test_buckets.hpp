#pragma once
// What the tests of buckets share: the gradients in a plan's buckets, and three small gradients in
// two buckets, whose memory a test reads and writes.
#include <memory>
#include <string>
#include <vector>

#include "14_buckets/flat_buffers.hpp"

namespace ddp::test {

using Values = std::vector<float>;

// Returns the gradients of each bucket of the plan.
inline BucketAssignment buckets_of(const BucketPlan& plan) {
    BucketAssignment buckets;
    for (const BucketPlan::Bucket& bucket : plan.buckets)
        buckets.push_back(bucket.gradients);
    return buckets;
}

inline std::shared_ptr<Parameter> make(Device& device, const std::string& name, int size) {
    return std::make_shared<Parameter>(
        name, Tensor(device, {size}, Values(static_cast<std::size_t>(size), 1.0f)));
}

// Three parameters of 5, 20 and 3 elements, in buckets of {c, b} and {a}: c from 0, b from 16
// (b takes two times 16 elements), a from 48.
struct Three {
    Three()
        : parameters{make(device, "a", 5), make(device, "b", 20), make(device, "c", 3)},
          memory(std::make_shared<Buffer<float>>(std::size_t{64})),
          buffers(device, parameters, rebuilt_plan(gradient_sizes(parameters), {90}, {2, 1, 0}),
                  {memory, memory->data()}, 64) {}

    Values all() {
        device.stream().synchronize();
        return memory->to_host_now();
    }
    // Writes `values` to the memory from element `first` on.
    void write(std::size_t first, const Values& values) {
        Tensor(device, {64}, std::shared_ptr<float>(memory, memory->data()))
            .view(first, {static_cast<int>(values.size())})
            .copy_from(values);
    }

    Device device;
    Parameters parameters;
    std::shared_ptr<Buffer<float>> memory;
    FlatBuffers buffers;
};

}  // namespace ddp::test
