#pragma once
// Data parallel training by one process that drives all devices: replicate, scatter, compute and
// gather in every step. This is torch.nn.DataParallel, except that PyTorch gathers the outputs and
// computes the loss on the first device; here each replica computes the loss of its own samples.
#include <functional>
#include <memory>
#include <vector>

#include "03_network/layer.hpp"
#include "03_network/loader.hpp"

namespace ddp {

class DataParallel {
  public:
    using MakeModel = std::function<std::unique_ptr<Module>(Device& device)>;

    // Makes `replicas` - 1 replicas of `model` with make_model, each on a Device of its own: a
    // stream of the current device. `model` lives on `device`; both must outlive this object.
    DataParallel(Device& device, Module& model, int replicas, const MakeModel& make_model);
    ~DataParallel();

    // Leaves the gradient of the batch's mean loss in the model, and returns that loss. If the
    // batch has fewer samples than there are replicas, some replicas do no work.
    double learn(const Batch& batch);

    std::size_t replicas() const { return 1 + others_.size(); }

  private:
    struct Replica;
    struct Work;

    void replicate();
    std::vector<Work> compute(const Batch& batch);
    void gather();

    Device& device_;
    Module& model_;
    std::vector<std::unique_ptr<Replica>> others_;
    Event ready_;
};

}  // namespace ddp
