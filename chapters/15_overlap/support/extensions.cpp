#include "15_overlap/ddp.hpp"

namespace ddp {

// ---- For a checkpoint

DdpState DistributedDataParallel::state() const {
    if (is_rebuilt_)
        return {encode_plan(gradients_.plan()), {}};
    return {"", ready_order_};
}

void DistributedDataParallel::set_state(const DdpState& state) {
    is_rebuilt_ = !state.plan.empty();
    ready_order_ = state.ready_order;
    if (is_rebuilt_)
        gradients_.arrange(decode_plan(state.plan, gradients_.plan().gradients));
}

// ---- For a rank without data

void DistributedDataParallel::shadow_step(bool is_reduced) {
    begin_step(is_reduced);
    buffers_may_differ_ = is_reduced;
    if (!is_reduced)
        return;
    wait_for_last_step();
    prepare({});
    // All ranks send the same buckets in the same order; here they are filled with zeros.
    for (std::size_t gradient = 0; gradient < is_ready_.size(); gradient++) {
        gradients_.zero_absent(gradient);
        mark_ready(gradient);
    }
    first_backward_.wait_for_all_ranks(communicator_.rank(), device_.stream());
    launch_ready_buckets();
    finalize();
}

}  // namespace ddp
