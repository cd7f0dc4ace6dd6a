#pragma once
// Steps without an epoch around them, for the demonstrations and benches of later chapters.
#include <functional>

#include "03_network/layers/fused_optimizers.hpp"

namespace ddp {

// Takes single steps, each with its own loss.
class SmallTraining {
  public:
    // Both must outlive this object.
    SmallTraining(Device& device, Optimizer& optimizer) : gradients_(optimizer), tape_(device) {}

    // Takes a step, and returns its loss, on the device: `loss_of` records it on the tape.
    // `backward` replaces tape.backward(loss), and can do more before the optimizer's step, such
    // as averaging the gradients. Enqueues only.
    using Loss = std::function<Variable(Tape& tape)>;
    using Backward = std::function<void(Variable loss)>;
    Tensor step(const Loss& loss_of, const Backward& backward = {}) {
        tape_.clear();  // a step that was not completed may have left something
        const Variable loss = loss_of(tape_);
        gradients_.begin_backward(loss);
        if (backward)
            backward(loss);
        else
            tape_.backward(loss);
        gradients_.step_and_zero();
        const Tensor value = loss.value();
        tape_.clear();
        return value;
    }
    // Takes a step with the gradients that `compute` leaves in the parameters, such as the sums
    // of several micro-batches or replicas.
    void step(const std::function<void()>& compute) {
        compute();
        gradients_.step_and_zero();
    }

  private:
    ZeroedGradients gradients_;
    Tape tape_;
};

}  // namespace ddp
