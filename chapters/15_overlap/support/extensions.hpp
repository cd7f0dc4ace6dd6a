#pragma once
// Extends DistributedDataParallel without changing it, for later chapters:
//
//     17    finds unused parameters by two of the hooks
//     19    saves a training with its DdpState, and continues it
#include <functional>
#include <string>
#include <vector>

#include "01_sgd/sgd.hpp"
#include "14_buckets/plan_text.hpp"

namespace ddp {

// The places in a step at which later chapters add their own code. All of them are called by the
// rank's own thread, at the same places on every rank. Any of them may be absent.
struct DdpHooks {
    // Begins every forward, before anything else is sent. `is_reduced`: whether the gradients of
    // this step will be reduced.
    std::function<void(bool is_reduced)> before_forward = {};
    // Follows the forward of a step that will be reduced; the graph is on the output's tape.
    // Returns the parameters that backward will not reach. Their gradients count as ready when
    // backward begins: with the sum that no_sync has left in them, or with zeros.
    std::function<Parameters(Variable output)> after_forward = {};
    // Called in every backward, reduced or not, as soon as this parameter's gradient is final.
    std::function<void(Parameter& parameter)> after_gradient = {};
    // Called if backward has ended without a gradient for these parameters, which after_forward
    // had not listed. If it returns, they count as zeros; if it throws or is absent, backward
    // fails.
    std::function<void(const Parameters& missing)> after_backward = {};
    // Called when all buckets have been launched.
    std::function<void()> before_finalize = {};
};

// The state on which the buckets of the coming steps depend, the same on all ranks. A checkpoint
// needs it, because the last bits of a sum depend on where in a bucket it stands.
struct DdpState {
    std::string plan;  // encode_plan of the rebuilt buckets; empty until they are rebuilt
    std::vector<std::size_t> ready_order;  // from the first reduced step until then

    bool operator==(const DdpState&) const = default;
};

}  // namespace ddp
