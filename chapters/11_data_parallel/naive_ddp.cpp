// Data parallel training in three lines:
//
//     once:            copy rank 0's parameters and buffers to all ranks     the constructor
//     in every step:   forward and backward with this rank's samples         the caller
//                      average each gradient over all ranks                  reduce_gradients()
//                      a step of this rank's optimizer                       the caller
#include "11_data_parallel/naive_ddp.hpp"

#include <algorithm>

namespace ddp {

NaiveDdp::NaiveDdp(Communicator& communicator, Device& device, Module& model)
    : communicator_(communicator), device_(device) {
    std::size_t largest = 0;
    for (const auto& parameter : model.parameters())
        if (!parameter->is_frozen) {
            parameters_.push_back(parameter);
            largest = std::max(largest, parameter->value.size());
        }
    // From here on all ranks have the same parameters. They are never sent again: equal gradients
    // keep them equal.
    copy_from_rank_0(communicator, device, model);
    transferred_ = communicator.allocate<float>(largest);
}

void NaiveDdp::reduce_gradients(ReduceOp op) {
    // In the first step: no kernel may spin on a rank that is still loading its kernels.
    first_backward_.wait_for_all_ranks(communicator_.rank(), device_.stream());
    Stream& stream = device_.stream();
    for (const auto& parameter : parameters_) {
        const Tensor& gradient = parameter->gradient();
        float* transferred = transferred_.data();
        const auto copy = [&](float* to, const float* from) {
            DDP_CHECK(
                cudaMemcpyAsync(to, from, gradient.bytes(), cudaMemcpyDeviceToDevice, stream));
        };
        // Into memory of the communicator, where other ranks can reach it.
        copy(transferred, gradient.data());
        // All ranks have the parameters in the same order, so each call is the same all-reduce
        // everywhere.
        communicator_.all_reduce(transferred, transferred, gradient.size(), op, stream,
                                 parameter->name);
        // And back, to where the optimizer reads.
        copy(gradient.data(), transferred);
    }
}

}  // namespace ddp
