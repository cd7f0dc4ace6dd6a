// The exercise rms_norm: a layer, forward and backward. Read exercises/03_network/README.md first.
#include "exercises/03_network/rms_norm.hpp"

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// Your kernels go here. grid_range(rows) gives each thread rows of its own: see the kernel
// predict_rows in 03_network/metrics.cu.

}  // namespace

Variable rms_norm(Variable x, Variable gain, float eps) {
    // The other two tasks are solved here as well, in the function that is the last argument of
    // tape->record(). For this task it may be empty: [](const Tensor&, Tape::InputGradients&) {}
    throw NotImplemented("forward");
}

}  // namespace ddp
