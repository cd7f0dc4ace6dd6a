#include "22_sharded/support/sharded_layer.hpp"

#include "common/gpu/gpu.hpp"

namespace ddp {

// Ends in a box that changes nothing: backward comes to it before it comes to the layer.
Variable ShardedLayer::forward(Variable input) {
    sharded_.before_forward(unit_);
    const Variable output = layer_->forward(input);
    sharded_.after_forward(unit_);
    return output.tape->record(
        "end of " + name(), output.value(), {output},
        [&sharded = sharded_, unit = unit_](const Tensor& gradient, Tape::InputGradients& inputs) {
            sharded.before_backward(unit);
            const GradientTarget target = inputs.target(0);
            DDP_CHECK(cudaMemcpyAsync(target.tensor.data(), gradient.data(), gradient.bytes(),
                                      cudaMemcpyDeviceToDevice, gradient.device().stream()));
        });
}

void ShardedLayer::set_training(bool is_training) {
    Module::set_training(is_training);
    layer_->set_training(is_training);
}

}  // namespace ddp
