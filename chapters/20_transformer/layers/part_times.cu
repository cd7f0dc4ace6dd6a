#include "20_transformer/layers/part_times.hpp"

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// Hands the gradient on, unchanged.
__global__ void pass_boundary(std::size_t n, const float* dy, float* dx, bool accumulate) {
    for (std::size_t i : grid_range(n))
        dx[i] = accumulate ? dx[i] + dy[i] : dy[i];
}

}  // namespace

void PartTimes::begin() {
    parts_.clear();
    times_.begin();
}

void PartTimes::end_of_forward(const std::string& part) {
    parts_.push_back(part);
    times_.mark("forward " + part);
}

Variable PartTimes::end_of(Variable x, const std::string& part) {
    end_of_forward(part);
    // The value is that of x, in the same memory.
    return x.tape->record(
        "boundary", x.value(), {x},
        [this, behind = parts_.size()](const Tensor& dy, Tape::InputGradients& inputs) {
            if (behind < parts_.size())
                times_.mark("backward " + parts_[behind]);
            if (!inputs.is_wanted(0))
                return;
            const GradientTarget dx = inputs.target(0);
            launch(dy.device().stream(), grid_for(dy.size()), pass_boundary, dy.size(), dy.data(),
                   dx.tensor.data(), dx.accumulate);
        });
}

void PartTimes::end_of_backward() {
    times_.mark("backward " + parts_.at(0));
}

}  // namespace ddp
