#include "15_overlap/graphed_step.hpp"

#include <algorithm>

#include "07_broadcast/collective.hpp"

namespace ddp {
namespace {

Peers& capturable(Communicator& communicator) {
    if (Peers* peers = communicator.capturable())
        return *peers;
    throw OptionError(
        "--graph needs the communicator native on one node, whose kernels find their numbers in "
        "device memory: leave out --communicator and --shape, or --graph.");
}

template <class T>
void copy(BasicTensor<T>& to, const BasicTensor<T>& from, Stream& stream) {
    DDP_CHECK(
        cudaMemcpyAsync(to.data(), from.data(), from.bytes(), cudaMemcpyDeviceToDevice, stream));
}

}  // namespace

GraphedStep::GraphedStep(DdpTrainer& trainer, Communicator& communicator, Device& device,
                         const Optimizer& optimizer, int called)
    : rank_(communicator.rank()),
      peers_(capturable(communicator)),
      device_(device),
      optimizer_(optimizer),
      called_(called) {
    trainer.set_make_step([this](const Batch& batch, const Step& step) { make(batch, step); });
}

void GraphedStep::make(const Batch& batch, const Step& step) {
    if (steps_++ < called_)
        return step(batch);
    if (!graph_ || learning_rate_ != optimizer_.learning_rate())
        capture(batch, step);
    Stream& stream = device_.stream();
    copy(batch_.images, batch.images, stream);
    copy(batch_.labels, batch.labels, stream);
    // The host is at most two launches ahead: a GPU's queue is finite.
    Event& ended = ended_[steps_ % 2];
    ended.synchronize();
    Collectives::over(peers_).launch_captured(collectives_, stream,
                                              [&] { graph_->launch(stream); });
    ended.record(stream);
}

// Does on the host what a step does there, once; the device does nothing of it yet. To
// instantiate a graph and to upload it allocates device memory: no rank's kernel waits meanwhile.
void GraphedStep::capture(const Batch& batch, const Step& step) {
    device_.stream().synchronize();
    rank_.barrier();
    batch_ = {Tensor(device_, batch.images.shape()), Labels(device_, batch.labels.shape())};
    collectives_ = Collectives::over(peers_).capture(
        [&] { graph_.emplace(device_.stream(), [&] { step(batch_); }); });
    graph_->upload(device_.stream());
    device_.stream().synchronize();
    learning_rate_ = optimizer_.learning_rate();
    rank_.barrier();
}

std::string GraphedStep::summary() const {
    const int graphed = std::max(0, steps_ - called_);
    return std::to_string(graphed) + " of " + std::to_string(steps_) +
           " steps were launches of a graph" +
           (graph_ ? " of " + std::to_string(graph_->nodes()) + " kernels, copies and fills" : "");
}

}  // namespace ddp
