// The search walks the tape back from the output, as backward will:
//
//     head <-- add <-- relu <-- expert1 <-- trunk <-- pictures
//     expert0: on the tape of other ranks, not on this one
//
//     after_forward     the search: unreached parameters count as ready, with zeros in their bucket
//     after_gradient    backward has reached a parameter: mark it in the map
//     after_backward    the loss has left out a part of the output: its parameters are unused
//     before_finalize   all buckets are sent: reduce the map, and settle every gradient
#include "17_unused_parameters/find_unused.hpp"

#include <algorithm>

namespace ddp {

Parameters unreached_from(Variable output, const Parameters& parameters) {
    const Parameters reached = output.tape->parameters_behind({output});
    Parameters unreached;
    for (const auto& parameter : parameters)
        if (std::ranges::find(reached, parameter) == reached.end())
            unreached.push_back(parameter);
    return unreached;
}

FindUnused::FindUnused(Communicator& communicator, Device& device, DistributedDataParallel& ddp)
    : ddp_(ddp), map_(communicator, device, ddp) {}

void FindUnused::plug_into(DdpHooks& hooks) {
    // Before backward, so that the buckets of unreached parameters can leave on time.
    hooks.after_forward = [this](Variable output) {
        Parameters unreached = unreached_from(output, ddp_.gradients().parameters());
        has_found_ |= !unreached.empty();
        map_.keep_old_gradients(unreached);
        return unreached;
    };
    // In every backward, also within no_sync: a parameter that a micro-batch has used is used.
    hooks.after_gradient = [this](Parameter& parameter) { map_.mark(parameter); };
    // The search began at the output, and the loss has not used all of it. Buckets of these
    // parameters are not sent yet.
    hooks.after_backward = [this](const Parameters& missing) {
        has_found_ = true;
        map_.keep_old_gradients(missing);
    };
    // One more small message, after the last bucket.
    hooks.before_finalize = [this] {
        map_.reduce();
        map_.settle();
    };
}

}  // namespace ddp
