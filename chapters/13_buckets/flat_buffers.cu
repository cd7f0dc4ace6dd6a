#include "13_buckets/flat_buffers.hpp"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

constexpr unsigned long long no_place = std::numeric_limits<unsigned long long>::max();

__device__ bool is_finite(float value) {
    return fabsf(value) <= FLT_MAX;  // false for NaN, too
}

// Lowers *first to begin + the index of the first element that is not finite. Nearly always there
// is none: a pass without branches says so, and only a thread that has one looks where.
__global__ void find_not_finite(std::size_t n, const float* data, unsigned long long begin,
                                unsigned long long* first) {
    int found = 0;
    for (std::size_t i : grid_range(n))
        found |= !is_finite(data[i]);
    if (!found)
        return;
    for (std::size_t i : grid_range(n))
        if (!is_finite(data[i])) {
            atomicMin(first, begin + i);
            return;
        }
}

void copy(const Tensor& from, Tensor& to) {
    if (from.size() > 0)
        DDP_CHECK(cudaMemcpyAsync(to.data(), from.data(), from.bytes(), cudaMemcpyDeviceToDevice,
                                  to.device().stream()));
}

// All of the buckets' memory.
Tensor tensor_over(Device& device, const std::shared_ptr<float>& memory, std::size_t size) {
    constexpr std::size_t most = std::numeric_limits<int>::max();
    if (size > most)
        throw std::invalid_argument("the buckets would hold " + std::to_string(size) +
                                    " elements, and a tensor holds at most " +
                                    std::to_string(most) + ": split the model");
    return {device, {static_cast<int>(size)}, memory};
}

// What is in `parameter`'s gradient now; empty if it is absent.
Tensor copy_of_gradient(Device& device, const Parameter& parameter) {
    if (!parameter.has_gradient())
        return {};
    Tensor result(device, parameter.value.shape());
    copy(parameter.gradient(), result);
    return result;
}

}  // namespace

Parameters learned_parameters(const Parameters& all) {
    Parameters learned;
    for (const auto& parameter : all)
        if (!parameter->is_frozen && std::ranges::find(learned, parameter) == learned.end())
            learned.push_back(parameter);
    return learned;
}

GradientSizes gradient_sizes(const Parameters& parameters) {
    GradientSizes sizes;
    for (const auto& parameter : parameters)
        sizes.push_back({parameter->name, parameter->value.size()});
    return sizes;
}

// ---- Placing ---------------------------------------------------------------------------------

FlatBuffers::FlatBuffers(Device& device, Parameters parameters, BucketPlan plan,
                         const std::shared_ptr<float>& memory, std::size_t size)
    : device_(device),
      parameters_(std::move(parameters)),
      memory_(tensor_over(device, memory, size)),
      first_not_finite_(device, {1}) {
    if (memory_.bytes() < plan.memory_bytes())
        throw std::invalid_argument("the buckets need " + std::to_string(plan.memory_bytes()) +
                                    " bytes of memory, not " + std::to_string(memory_.bytes()));
    for (std::size_t i = 0; i < parameters_.size(); i++)
        indices_[parameters_[i].get()] = i;
    arrange(std::move(plan));
    forget_searches();
}

void FlatBuffers::arrange(BucketPlan plan) {
    if (plan.gradients != gradient_sizes(parameters_))
        throw std::invalid_argument(
            "the bucket plan is for other gradients: make it from gradient_sizes of the same "
            "parameters");
    std::vector<Tensor> present;  // aside: old and new places overlap
    for (const auto& parameter : parameters_)
        present.push_back(copy_of_gradient(device_, *parameter));
    plan_ = std::move(plan);
    fill(memory_, 0.0f);
    for (std::size_t i = 0; i < parameters_.size(); i++) {
        parameters_[i]->place_gradient(view(i));
        if (!present[i].is_empty())
            copy(present[i], parameters_[i]->gradient_for_writing());
    }
}

std::size_t FlatBuffers::index_of(const Parameter& parameter) const {
    const auto known = indices_.find(&parameter);
    if (known == indices_.end())
        throw std::out_of_range("the gradient of '" + parameter.name + "' is in no bucket");
    return known->second;
}

// Where a bucket begins in the memory, in elements.
std::size_t FlatBuffers::begin_of(std::size_t bucket) const {
    std::size_t begin = 0;
    for (std::size_t i = 0; i < bucket; i++)
        begin += plan_.buckets[i].size;
    return begin;
}

Tensor FlatBuffers::bucket(std::size_t i) const {
    return memory_.view(begin_of(i), {static_cast<int>(plan_.buckets.at(i).size)});
}

Tensor FlatBuffers::view(std::size_t i) const {
    const BucketPlan::Place place = plan_.places.at(i);
    return memory_.view(begin_of(place.bucket) + place.offset, parameters_[i]->value.shape());
}

void FlatBuffers::zero_absent(std::size_t i) {
    Tensor part = view(i);
    fill(part, 0.0f);
}

// ---- Searching -------------------------------------------------------------------------------

void FlatBuffers::check_finite(std::size_t bucket) {
    const Tensor all = this->bucket(bucket);
    launch(device_.stream(), grid_for(all.size()), find_not_finite, all.size(), all.data(),
           begin_of(bucket), first_not_finite_.data());
}

void FlatBuffers::require_finite() {
    const unsigned long long found = first_not_finite_.to_host()[0];
    if (found == no_place)
        return;
    forget_searches();
    for (std::size_t i = 0; i < parameters_.size(); i++) {
        const auto begin = static_cast<unsigned long long>(view(i).data() - memory_.data());
        const GradientSize& gradient = plan_.gradients[i];
        if (found >= begin && found < begin + gradient.elements)
            throw std::runtime_error(
                "the gradient of '" + gradient.name + "' is infinite or no number at element " +
                std::to_string(found - begin) + " of " + std::to_string(gradient.elements) +
                ": the steps are too long, or the loss divides by zero");
    }
    throw std::runtime_error(
        "the gap behind a gradient is infinite or no number: a kernel has written beyond its "
        "gradient");
}

void FlatBuffers::forget_searches() {
    first_not_finite_.copy_from(std::array{no_place});
}

}  // namespace ddp
