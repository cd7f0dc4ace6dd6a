#include "10_data_parallel/naive_ddp.hpp"

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
    copy_from_rank_0(communicator, device, model);
    transferred_ = communicator.allocate<float>(largest);
}

void NaiveDdp::reduce_gradients(ReduceOp op) {
    Stream& stream = device_.stream();
    for (const auto& parameter : parameters_) {
        const Tensor& gradient = parameter->gradient();
        float* transferred = transferred_.data();
        const auto copy = [&](float* to, const float* from) {
            DDP_CHECK(
                cudaMemcpyAsync(to, from, gradient.bytes(), cudaMemcpyDeviceToDevice, stream));
        };
        copy(transferred, gradient.data());
        communicator_.all_reduce(transferred, transferred, gradient.size(), op, stream,
                                 parameter->name);
        copy(gradient.data(), transferred);
    }
}

}  // namespace ddp
