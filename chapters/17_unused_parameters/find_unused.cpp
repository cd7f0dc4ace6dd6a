// The search walks the tape back from the output, as backward will:
//
//     head <-- add <-- relu <-- expert1 <-- trunk <-- pictures
//     expert0: on the tape of other ranks, not on this one
//
//     after_forward     the search: unreached parameters count as ready, with zeros in their bucket
//     after_gradient    backward has reached a parameter: mark it in the map
//     after_backward    the loss has left out a part of the output: what is behind it is unused
//     before_finalize   all buckets are sent: reduce the map, and settle every gradient
#include "17_unused_parameters/find_unused.hpp"

#include <algorithm>
#include <stdexcept>

namespace ddp {

Parameters unreached_from(Variable output, const Parameters& parameters) {
    const Parameters reached = output.tape->parameters_behind({output});
    Parameters unreached;
    for (const auto& parameter : parameters)
        if (std::ranges::find(reached, parameter) == reached.end())
            unreached.push_back(parameter);
    return unreached;
}

std::string names_of(const Parameters& parameters) {
    std::string names;
    for (const auto& parameter : parameters)
        names += (names.empty() ? "" : ", ") + parameter->name;
    return names;
}

// ---- FindUnused: a search in every step

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
    // One more small message, behind the last bucket.
    hooks.before_finalize = [this] {
        map_.reduce();
        map_.settle();
    };
}

// ---- StaticGraph: the first step decides

StaticGraph::StaticGraph(Communicator& communicator, Device& device, DistributedDataParallel& ddp)
    : map_(communicator, device, ddp) {}

void StaticGraph::plug_into(DdpHooks& hooks) {
    // Empty in the first step: then backward finds out by itself.
    hooks.after_forward = [this](Variable) { return unused_; };
    // Later steps only check that no unused parameter is used after all.
    hooks.after_gradient = [this](Parameter& parameter) {
        if (is_first_)
            return map_.mark(parameter);
        for (const auto& unused : unused_)
            if (unused.get() == &parameter)
                throw std::runtime_error("the graph has changed: '" + parameter.name +
                                         "' has a gradient, and had none in the first step; a "
                                         "graph that changes needs FindUnused");
    };
    // The end of the first backward: the parameters without a gradient are the unused ones.
    hooks.after_backward = [this](const Parameters& missing) {
        if (!is_first_)
            throw std::runtime_error("the graph has changed: no gradient for " + names_of(missing) +
                                     ", which had one in the first step; a graph that changes "
                                     "needs FindUnused");
        unused_ = missing;
    };
    hooks.before_finalize = [this] {
        if (is_first_)
            end_first_step();
        // The means of other ranks' gradients are in the buckets: let the optimizer find them.
        for (const auto& parameter : used_by_others_)
            parameter->gradient_for_writing();
    };
}

void StaticGraph::end_first_step() {
    map_.reduce();
    used_by_others_ = map_.settle();
    is_first_ = false;
}

}  // namespace ddp
