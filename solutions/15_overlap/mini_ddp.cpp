// The exercise mini_ddp: a constructor and a hook. Read exercises/15_overlap/README.md first.
#include "exercises/15_overlap/mini_ddp.hpp"

namespace ddp {

MiniDdp::MiniDdp(Communicator& communicator, Device& device, Module& model)
    : communicator_(communicator), device_(device), parameters_(model.parameters()) {
    // stub: begin
    //: Besides rank 0's parameters, each gradient needs memory that the other ranks can reach.
    copy_from_rank_0(communicator, device, model);
    for (const auto& parameter : parameters_)
        memory_.emplace(parameter.get(), communicator.allocate<float>(parameter->value.size()));
    // end stub
}

void MiniDdp::backward(const Variable& loss) {
    // stub: overlap
    //: Two streams: backward's is device_.stream(), and wire_ carries the gradients. Who waits for
    //: whom, and when?
    loss.tape->backward(loss, [&](Parameter& parameter) {
        const Tensor& gradient = parameter.gradient();
        float* sent = memory_.at(&parameter).data();
        computed_.record(device_.stream());
        wire_.wait(computed_);
        DDP_CHECK(cudaMemcpyAsync(sent, gradient.data(), gradient.bytes(), cudaMemcpyDeviceToDevice,
                                  wire_));
        communicator_.all_reduce(sent, sent, gradient.size(), ReduceOp::average, wire_);
        DDP_CHECK(cudaMemcpyAsync(gradient.data(), sent, gradient.bytes(), cudaMemcpyDeviceToDevice,
                                  wire_));
    });
    reduced_.record(wire_);
    device_.stream().wait(reduced_);
    // end stub
}

}  // namespace ddp
