#pragma once
// Loss scaling: the loss is multiplied before backward, and the gradients are divided after it, so
// that small gradients do not round to 0 on their way through 16-bit numbers. (Micikevicius et al.,
// 2018; torch.amp.GradScaler, and torch.distributed.fsdp's ShardedGradScaler.)
//
//     GradScaler scaler(device);
//     for each batch:
//         ddp.backward(loss, {}, scaler.scale());
//         scaler.unscale(optimizer.parameters());            // optional: to clip afterwards
//         clip_grad_norm(optimizer.parameters(), 1.0);
//         scaler.step(optimizer);                            // or not, if a gradient overflowed
//         scaler.update();
#include <optional>

#include "01_sgd/sgd.hpp"
#include "09_all_reduce/communicator.hpp"

namespace ddp {

// PyTorch's defaults.
struct GradScalerOptions {
    double initial_scale = 65536;
    double growth_factor = 2;     // after growth_interval steps in a row without an overflow
    double backoff_factor = 0.5;  // after an overflow
    int growth_interval = 2000;   // steps
};

class GradScaler {
  public:
    // Without a communicator it looks at this rank's gradients alone, and sends nothing: enough if
    // all ranks have the same gradients, as DistributedDataParallel leaves them. With one, step()
    // asks all ranks, by an all-reduce of one number, and no rank steps if any has found an
    // overflow. All that is passed must outlive this object. Throws std::invalid_argument for
    // options that make no sense.
    explicit GradScaler(Device& device, const GradScalerOptions& options = {},
                        Communicator* communicator = nullptr);

    // Returns the factor for backward.
    float scale() const { return scale_; }

    // Divides the gradients by the scale and searches them for infinity and NaN, in one pass.
    // Enqueues only. Throws std::logic_error for a second call before update().
    void unscale(const Parameters& parameters);
    // Does the same with a part of the gradients, on `stream`, which must be done before step().
    void unscale_part(const Tensor& gradients, Stream& stream);
    // Steps, unless infinity or NaN was found; returns whether it has. Unscales first if nothing
    // has been unscaled since update(). Waits for the device.
    bool step(Optimizer& optimizer);
    // Changes the scale for the next step. Throws std::logic_error without a step() before it.
    void update();

  private:
    Device& device_;
    Communicator* communicator_;
    const GradScalerOptions options_;
    float scale_;
    int good_steps_ = 0;  // since the scale was last changed
    Tensor found_;  // 1 if this rank (or, after step, any rank) has found infinity or NaN; else 0
    bool is_unscaled_ = false;
    std::optional<bool> overflowed_;  // in the last step()
};

}  // namespace ddp
