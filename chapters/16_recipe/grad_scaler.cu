// The scale over eight steps, with a growth interval of 3 steps:
//
//     step          1      2      3      4      5      6      7      8
//     scale     65536  65536  65536 131072  65536  65536  65536 131072
//     overflow      -      -      -    yes      -      -      -      -
//     steps?      yes    yes    yes     no    yes    yes    yes    yes
//                               grows: |  halves: |         grows: |
#include "16_recipe/grad_scaler.hpp"

#include <cfloat>
#include <cmath>
#include <cuda/atomic>
#include <stdexcept>

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// Multiplies by `factor`, and writes 1 to *found if a number was infinite or a NaN. Several threads
// may write it at once, so the write is atomic.
__global__ void multiply_and_search(std::size_t n, float factor, float* values, float* found) {
    int is_found = 0;
    for (std::size_t i : grid_range(n)) {
        is_found |= !(fabsf(values[i]) <= FLT_MAX);  // true for NaN, too
        values[i] *= factor;
    }
    if (is_found)
        cuda::atomic_ref<float, cuda::thread_scope_device>(*found).store(
            1.0f, cuda::memory_order_relaxed);
}

// Returns a tensor for the flag: in the communicator's memory if ranks must agree on it.
Tensor make_flag(Device& device, Communicator* communicator) {
    Tensor flag = communicator == nullptr
                      ? Tensor(device, {1})
                      : Tensor(device, {1}, communicator->allocate<float>(1).share());
    fill(flag, 0.0f);
    return flag;
}

}  // namespace

// `!(a > b)` also refuses a NaN, for which every comparison is false.
GradScaler::GradScaler(Device& device, const GradScalerOptions& options, Communicator* communicator)
    : device_(device),
      communicator_(communicator),
      options_(options),
      scale_(static_cast<float>(options.initial_scale)),
      found_(make_flag(device, communicator)) {
    if (!(options.growth_factor > 1) || !(options.backoff_factor > 0) ||
        !(options.backoff_factor < 1) || !(scale_ > 0) || options.growth_interval < 1)
        throw std::invalid_argument(
            "a scaler needs a growth factor above 1, a backoff factor between 0 and 1, and a "
            "positive initial scale and growth interval, such as 2, 0.5, 65536 and 2000");
}

// ---- A step: unscale, step or skip, update

void GradScaler::unscale(const Parameters& parameters) {
    if (is_unscaled_)
        throw std::logic_error(
            "these gradients have been unscaled: call update() once a step, after step()");
    for (const auto& parameter : parameters)
        if (parameter->has_gradient())
            unscale_part(parameter->gradient(), device_.stream());
    is_unscaled_ = true;
}

// Unscales some of the gradients on a stream of the caller's: a bucket, for example.
void GradScaler::unscale_part(const Tensor& gradients, Stream& stream) {
    launch(stream, grid_for(gradients.size()), multiply_and_search, gradients.size(), 1.0f / scale_,
           gradients.data(), found_.data());
    is_unscaled_ = true;
}

bool GradScaler::step(Optimizer& optimizer) {
    if (!is_unscaled_)
        unscale(optimizer.parameters());
    // A rank that finds an overflow alone would be the only one that does not step: ask all.
    if (communicator_ != nullptr)
        communicator_->all_reduce(found_.data(), found_.data(), 1, ReduceOp::maximum,
                                  device_.stream(), "found_inf");
    overflowed_ = found_.to_host()[0] != 0;  // waits for the device, once a step
    if (!*overflowed_)
        optimizer.step();
    return !*overflowed_;
}

void GradScaler::update() {
    if (!overflowed_)
        throw std::logic_error("there was no step() since the last update()");
    // Halve after an overflow; double after growth_interval steps without one.
    good_steps_ = *overflowed_ ? 0 : good_steps_ + 1;
    if (*overflowed_)
        scale_ *= static_cast<float>(options_.backoff_factor);
    if (good_steps_ == options_.growth_interval) {
        const float grown = scale_ * static_cast<float>(options_.growth_factor);
        scale_ = std::isfinite(grown) ? grown : scale_;
        good_steps_ = 0;
    }
    fill(found_, 0.0f);
    is_unscaled_ = false;
    overflowed_.reset();
}

}  // namespace ddp
