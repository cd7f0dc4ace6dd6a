#pragma once
// The steps of Sgd and Adam in less time, to the bit.
#include <unordered_map>

#include "03_network/optimizers.hpp"

namespace ddp {

// ---- One launch for all parameters

// A network has many small parameters, and a GPU has moved one of them before the host has launched
// the next one's kernel. (PyTorch: fused=True.)
class FusedSgd final : public Sgd {
  public:
    using Sgd::Sgd;
    void step() override;
    // Takes a step, and in the same pass writes 0 over every gradient that it reads.
    void step_and_write_zeros();

  private:
    void enqueue_step(bool writes_zeros);
};

class FusedAdam final : public Adam {
  public:
    using Adam::Adam;
    void step() override;
};

// ---- Backward adds to zeros

// Steps and zeroes in one pass over the memory. FusedSgd reads every gradient anyway, and leaves a
// zero in its place. The gradient is then absent, as after any zero. But the next backward can add
// to these zeros instead of overwriting them, which saves a BLAS the pass in which it clears its
// result.
//
// Between step_and_zero() and the next begin_backward() only these two may use the gradients.
class ZeroedGradients {
  public:
    // `optimizer` must outlive this object. If it is not a FusedSgd, nothing is saved.
    explicit ZeroedGradients(Optimizer& optimizer);
    // Does what optimizer.step() and optimizer.zero_gradients() do.
    void step_and_zero();
    // Prepares a backward from `loss`: makes present, as zeros, those gradients that it will reach
    // and whose memory has been zeroed since it was last written.
    void begin_backward(Variable loss);

  private:
    Optimizer& optimizer_;
    FusedSgd* sgd_;
    std::unordered_map<const Parameter*, const float*> zeros_;  // and where they are
};

}  // namespace ddp
