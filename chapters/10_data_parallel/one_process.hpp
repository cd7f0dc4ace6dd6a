#pragma once
// Data parallel training by one process that has all devices: replicate, scatter, compute, gather,
// in every step. (torch.nn.DataParallel. There the outputs are gathered, and the loss is computed
// on the first device; here each replica computes the loss of its own part.)
#include <functional>
#include <memory>
#include <vector>

#include "03_network/layer.hpp"
#include "03_network/loader.hpp"

namespace ddp {

// Of a step, in seconds. The host waits for all devices between them, to read the clock.
struct OneProcessStep {
    double replicate = 0;  // parameters, from the first device to the others
    double compute = 0;    // scatter, forward and backward
    double gather = 0;     // gradients, to the first device
};

class DataParallel {
  public:
    using MakeModel = std::function<std::unique_ptr<Module>(Device& device)>;

    // `model` lives on `device`, and both must live longer. The replicas have devices of their own:
    // streams of the device that is current.
    DataParallel(Device& device, Module& model, int replicas, const MakeModel& make_model,
                 std::size_t reserved_bytes = 0);
    ~DataParallel();

    // Leaves the gradient of the batch's mean loss in the model, and returns that loss. A batch of
    // fewer samples than replicas leaves some without work.
    double learn(const Batch& batch);

    const OneProcessStep& last_step() const { return times_; }
    std::size_t replicas() const { return 1 + others_.size(); }

  private:
    struct Replica;

    void replicate();
    void gather();

    Device& device_;
    Module& model_;
    std::vector<std::unique_ptr<Replica>> others_;
    OneProcessStep times_;
    Event ready_;
};

}  // namespace ddp
