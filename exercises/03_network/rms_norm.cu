// The exercise rms_norm: a layer, forward and backward. Read exercises/03_network/README.md first.
#include "exercises/03_network/rms_norm.hpp"

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// Your kernels go here. grid_range(rows) gives each thread rows of its own, as the kernel
// row_losses of 03_network/cross_entropy.cu has it.

}  // namespace

Variable rms_norm(Variable x, Variable gain, float eps) {
    // The other two tasks are solved here, too: in the function that tape->record() takes last.
    // Until then it may be empty: [](const Tensor&, Tape::InputGradients&) {}
    throw NotImplemented("forward");
}

}  // namespace ddp
