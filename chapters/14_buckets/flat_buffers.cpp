// One array holds all buckets, one after the other; each gradient is a view of its place:
//
//     memory_    | bucket 0                            | bucket 1                              |
//                | linear3.bias . | linear3.weight ... | linear2.bias ... | linear2.weight ... |
//                ^ begin_of(0)                         ^ begin_of(1)
//                                 ^ view(i): places[i] = {bucket 0, offset}
//
// Backward writes into the views, the all-reduce takes a bucket as a whole, and the optimizer reads
// the views. The dots are gaps: each gradient begins at a multiple of 64 bytes.
#include "14_buckets/flat_buffers.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

void copy(const Tensor& from, Tensor& to) {
    if (from.size() > 0)
        DDP_CHECK(cudaMemcpyAsync(to.data(), from.data(), from.bytes(), cudaMemcpyDeviceToDevice,
                                  to.device().stream()));
}

// Returns all of the buckets' memory as one tensor.
Tensor tensor_over(Device& device, const std::shared_ptr<float>& memory, std::size_t size) {
    constexpr std::size_t most = std::numeric_limits<int>::max();
    if (size > most)
        throw std::invalid_argument("the buckets would hold " + std::to_string(size) +
                                    " elements, and a tensor holds at most " +
                                    std::to_string(most) + ": split the model");
    return {device, {static_cast<int>(size)}, memory};
}

// Returns a copy of the parameter's gradient; an empty tensor if it is absent.
Tensor copy_of_gradient(Device& device, const Parameter& parameter) {
    if (!parameter.has_gradient())
        return {};
    Tensor result(device, parameter.value.shape());
    copy(parameter.gradient(), result);
    return result;
}

}  // namespace

// Tied parameters are one object that the model lists twice; two gradients for it would be wrong.
Parameters learned_parameters(const Parameters& all) {
    Parameters learned;
    for (const auto& parameter : all)
        if (!parameter->is_frozen && std::ranges::find(learned, parameter) == learned.end())
            learned.push_back(parameter);
    return learned;
}

// The plan needs names and sizes only, so it can be made and sent without any gradient.
GradientSizes gradient_sizes(const Parameters& parameters) {
    GradientSizes sizes;
    for (const auto& parameter : parameters)
        sizes.push_back({parameter->name, parameter->value.size()});
    return sizes;
}

// ---- Placing

FlatBuffers::FlatBuffers(Device& device, Parameters parameters, BucketPlan plan,
                         const std::shared_ptr<float>& memory, std::size_t size)
    : device_(device),
      parameters_(std::move(parameters)),
      memory_(tensor_over(device, memory, size)) {
    if (memory_.bytes() < plan.memory_bytes())
        throw std::invalid_argument("the buckets need " + std::to_string(plan.memory_bytes()) +
                                    " bytes of memory, not " + std::to_string(memory_.bytes()));
    // The tape knows parameters, the plan knows indices.
    for (std::size_t i = 0; i < parameters_.size(); i++)
        indices_[parameters_[i].get()] = i;
    arrange(std::move(plan));
}

void FlatBuffers::arrange(BucketPlan plan) {
    if (plan.gradients != gradient_sizes(parameters_))
        throw std::invalid_argument(
            "the bucket plan is for other gradients: make it from gradient_sizes of the same "
            "parameters");
    // Old and new places overlap: set the values aside first.
    std::vector<Tensor> present;
    for (const auto& parameter : parameters_)
        present.push_back(copy_of_gradient(device_, *parameter));
    plan_ = std::move(plan);
    fill(memory_, 0.0f);  // the gaps stay 0 from here on
    // From now on backward writes parameter i's gradient to view(i).
    for (std::size_t i = 0; i < parameters_.size(); i++) {
        parameters_[i]->place_gradient(view(i));
        if (!present[i].is_empty())
            copy(present[i], parameters_[i]->gradient_for_writing());
    }
}

// Backward reports a parameter whose gradient is final; the plan counts in indices.
std::size_t FlatBuffers::index_of(const Parameter& parameter) const {
    const auto known = indices_.find(&parameter);
    if (known == indices_.end())
        throw std::out_of_range("the gradient of '" + parameter.name + "' is in no bucket");
    return known->second;
}

// Returns where a bucket begins in the memory, in elements: after all earlier buckets.
std::size_t FlatBuffers::begin_of(std::size_t bucket) const {
    std::size_t begin = 0;
    for (std::size_t i = 0; i < bucket; i++)
        begin += plan_.buckets[i].size;
    return begin;
}

// Both are views: they share the memory, and nothing is copied.
Tensor FlatBuffers::bucket(std::size_t i) const {
    return memory_.view(begin_of(i), {static_cast<int>(plan_.buckets.at(i).size)});
}

Tensor FlatBuffers::view(std::size_t i) const {
    const BucketPlan::Place place = plan_.places.at(i);
    return memory_.view(begin_of(place.bucket) + place.offset, parameters_[i]->value.shape());
}

// A parameter without a gradient keeps its place in the bucket, and the other ranks add that place:
// it must hold 0, not the last step's number.
void FlatBuffers::zero_absent(std::size_t i) {
    Tensor place = view(i);
    fill(place, 0.0f);
}

}  // namespace ddp
