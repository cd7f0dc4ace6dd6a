#pragma once
// The two optimizers of the book: SGD with momentum (sgd_momentum.cu) and Adam (layers/adam.cu).
#include <unordered_map>

#include "01_sgd/sgd.hpp"

namespace ddp {

// Stochastic gradient descent that keeps its direction. PyTorch's formula:
//
//     velocity = momentum * velocity + (gradient + weight_decay * value)
//     value   -= learning_rate * velocity
class Sgd : public Optimizer {
  public:
    // Throws std::invalid_argument if the learning rate is not a positive, finite number, momentum
    // not within [0, 1), or weight_decay negative or not finite.
    Sgd(Parameters parameters, double learning_rate, double momentum = 0.9,
        double weight_decay = 0.0);
    void step() override;
    // Takes a step, and in the same pass writes 0 over every gradient that it reads.
    void step_and_write_zeros();
    OptimizerState state() override;  // each parameter's momentum_buffer

  protected:
    virtual void enqueue_step(bool writes_zeros);

    double momentum_, weight_decay_;
    std::vector<Tensor> velocities_;  // one per parameter
};

// Adam (Kingma and Ba, 2015): every number gets its own step length, from running means of its
// gradient and of the gradient's square. PyTorch's formula, with weight_decay * value added to the
// gradient.
class Adam : public Optimizer {
  public:
    static constexpr double eps = 1e-8;  // the usual one

    // `eps` is added to the root of the mean square, which may be 0. Throws std::invalid_argument
    // as Sgd does, and unless `eps` is positive.
    Adam(Parameters parameters, double learning_rate = 1e-3, double weight_decay = 0.0,
         double eps = Adam::eps);
    void step() override;
    OptimizerState state() override;  // each parameter's exp_avg, exp_avg_sq and step

    static constexpr double beta1 = 0.9;    // how much of the old mean a step keeps
    static constexpr double beta2 = 0.999;  // and of the old mean square

  protected:
    struct State {
        Tensor mean, square;
        int steps = 0;  // steps in which the parameter had a gradient
    };

    double weight_decay_, eps_;
    std::vector<State> states_;  // one per parameter
};

// ---- The same, faster: one launch for all parameters

// Each takes the steps of its base, to the bit. A network has many small parameters, and a GPU has
// moved one of them before the host has launched the next one's kernel. (PyTorch: fused=True.)
class FusedSgd final : public Sgd {
  public:
    using Sgd::Sgd;

  private:
    void enqueue_step(bool writes_zeros) override;
};

class FusedAdam final : public Adam {
  public:
    using Adam::Adam;
    void step() override;
};

// ---- The same, faster: backward adds to zeros

// Steps and zeroes in one pass over the memory; the results are the same to the bit. Sgd reads
// every gradient anyway, and leaves a zero in its place. The gradient is then absent, as after any
// zero. But the next backward can add to these zeros instead of overwriting them, which saves a
// BLAS the pass in which it clears its result.
//
// Between step_and_zero() and the next begin_backward() only these two may use the gradients.
class ZeroedGradients {
  public:
    // `optimizer` must outlive this object. If it is not an Sgd, nothing is saved.
    explicit ZeroedGradients(Optimizer& optimizer);
    // Does what optimizer.step() and optimizer.zero_gradients() do.
    void step_and_zero();
    // Prepares a backward from `loss`: makes present, as zeros, those gradients that it will reach
    // and whose memory has been zeroed since it was last written.
    void begin_backward(Variable loss);

  private:
    Optimizer& optimizer_;
    Sgd* sgd_;
    std::unordered_map<const Parameter*, const float*> zeros_;  // and where they are
};

}  // namespace ddp
