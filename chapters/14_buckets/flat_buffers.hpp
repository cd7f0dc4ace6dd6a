#pragma once
// The buckets' memory. The gradients of a bucket lie side by side, so that one collective reduces
// them all. They live there (PyTorch's gradient_as_bucket_view), so nothing is copied.
#include <memory>
#include <unordered_map>

#include "01_sgd/sgd.hpp"
#include "14_buckets/bucket_plan.hpp"

namespace ddp {

// Returns the parameters whose gradients are reduced, in the order given: without frozen ones, and
// with tied ones listed once.
Parameters learned_parameters(const Parameters& all);

// Returns name and size of each parameter's gradient, in the order given.
GradientSizes gradient_sizes(const Parameters& parameters);

class FlatBuffers {
  public:
    // Places the gradients of `parameters` (each listed once, none frozen) by `plan` in `memory`:
    // `size` elements of device memory, at least plan.memory_bytes(), which the gradients share.
    // `device` must outlive this object. Throws std::invalid_argument if the memory is too small or
    // has 2^31 elements or more, or if the plan is for other gradients.
    FlatBuffers(Device& device, Parameters parameters, BucketPlan plan,
                const std::shared_ptr<float>& memory, std::size_t size);

    // Divides the same memory by another plan. A gradient that is present keeps its values.
    // Enqueues only. Throws as the constructor does.
    void arrange(BucketPlan plan);

    const BucketPlan& plan() const { return plan_; }
    const Parameters& parameters() const { return parameters_; }
    // Returns the index of a parameter's gradient in the plan; throws std::out_of_range without
    // one.
    std::size_t index_of(const Parameter& parameter) const;

    // Returns bucket i as a one-dimensional view, with its gaps: they are 0, and so is their sum
    // over the ranks.
    Tensor bucket(std::size_t i) const;
    // Returns the place of gradient i as a view in its parameter's shape.
    Tensor view(std::size_t i) const;

    // Fills the place of gradient i with zeros and leaves the gradient absent. A rank whose loss
    // does not depend on the parameter adds these zeros to the sum over the ranks.
    void zero_absent(std::size_t i);

  private:
    std::size_t begin_of(std::size_t bucket) const;

    Device& device_;
    const Parameters parameters_;
    std::unordered_map<const Parameter*, std::size_t> indices_;
    BucketPlan plan_;
    Tensor memory_;
};

}  // namespace ddp
