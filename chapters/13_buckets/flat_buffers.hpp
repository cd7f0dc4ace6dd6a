#pragma once
// The buckets' memory. The gradients of a bucket lie side by side, so that one collective reduces
// them all; and they lie there from the start: backward writes into the buckets, and the optimizer
// reads from them (PyTorch's gradient_as_bucket_view). Nothing is copied, and the memory of one set
// of gradients is saved.
#include <memory>
#include <unordered_map>

#include "01_sgd/sgd.hpp"
#include "13_buckets/bucket_plan.hpp"

namespace ddp {

// What is to be reduced, in the order given: frozen parameters are left out, tied ones are listed
// once.
Parameters learned_parameters(const Parameters& all);

GradientSizes gradient_sizes(const Parameters& parameters);

class FlatBuffers {
  public:
    // Places the gradients of `parameters` (each listed once, none frozen) by `plan`, in `size`
    // elements of device memory, plan.memory_bytes() of it at least, from a multiple of
    // BucketPlan::alignment on. Whoever owns `memory`, the gradients share it from now on. Throws
    // std::invalid_argument if the memory is too small or has 2^31 elements or more, or if the plan
    // is for other gradients. `device` must outlive the buffers.
    FlatBuffers(Device& device, Parameters parameters, BucketPlan plan,
                const std::shared_ptr<float>& memory, std::size_t size);

    // The same memory by another plan. A gradient that is present keeps its values. Enqueues only.
    // Throws as the constructor does.
    void arrange(BucketPlan plan);

    const BucketPlan& plan() const { return plan_; }
    const Parameters& parameters() const { return parameters_; }
    // The number of a parameter's gradient in the plan. Throws std::out_of_range if it has none.
    std::size_t index_of(const Parameter& parameter) const;

    // One bucket as a whole, gaps included: they are 0, and so is their sum over the ranks.
    Tensor bucket(std::size_t i) const;
    // The part of it where gradient i lies, in its parameter's shape, be the gradient present or
    // not.
    Tensor view(std::size_t i) const;

    // Sets gradient i's part to 0 and leaves the gradient absent: what a rank whose loss does not
    // depend on the parameter adds to the others' sum.
    void zero_absent(std::size_t i);

    // Enqueues a search for NaN and infinity in a bucket, which costs one pass over its memory.
    void check_finite(std::size_t bucket);
    // Waits for the device, and throws std::runtime_error naming the parameter if a search since
    // the last call has found one; the first in memory if there are several.
    void require_finite();

  private:
    std::size_t begin_of(std::size_t bucket) const;
    void forget_searches();

    Device& device_;
    const Parameters parameters_;
    std::unordered_map<const Parameter*, std::size_t> indices_;
    BucketPlan plan_;
    Tensor memory_;
    BasicTensor<unsigned long long> first_not_finite_;  // one: an element of memory_
};

}  // namespace ddp
