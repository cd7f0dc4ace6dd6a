#include "15_unused_parameters/find_unused.hpp"

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

// ---- A search in every step

FindUnused::FindUnused(Communicator& communicator, Device& device, DistributedDataParallel& ddp)
    : ddp_(ddp), map_(communicator, device, ddp) {}

void FindUnused::plug_into(DdpHooks& hooks) {
    hooks.after_forward = [this](Variable output) {
        Parameters unreached = unreached_from(output, ddp_.gradients().parameters());
        has_found_ |= !unreached.empty();
        map_.keep_old_gradients(unreached);
        return unreached;
    };
    hooks.after_gradient = [this](Parameter& parameter) { map_.mark(parameter); };
    hooks.before_finalize = [this] {
        map_.reduce();
        map_.settle();
    };
}

// ---- Once for all

StaticGraph::StaticGraph(Communicator& communicator, Device& device, DistributedDataParallel& ddp)
    : map_(communicator, device, ddp) {}

void StaticGraph::plug_into(DdpHooks& hooks) {
    hooks.after_forward = [this](Variable) { return unused_; };
    hooks.after_gradient = [this](Parameter& parameter) {
        if (is_first_)
            return map_.mark(parameter);
        for (const auto& unused : unused_)
            if (unused.get() == &parameter)
                throw std::runtime_error("the graph has changed: '" + parameter.name +
                                         "' has a gradient, and had none in the first step; a "
                                         "graph that changes needs FindUnused");
    };
    hooks.after_backward = [this](const Parameters& missing) {
        if (!is_first_)
            throw std::runtime_error("the graph has changed: no gradient of " + names_of(missing) +
                                     ", which had one in the first step; a graph that changes "
                                     "needs FindUnused");
        unused_ = missing;
    };
    hooks.before_finalize = [this] {
        if (is_first_)
            first_step_ends();
        for (const auto& parameter : used_by_others_)
            parameter->gradient_for_writing();
    };
}

void StaticGraph::first_step_ends() {
    map_.reduce();
    used_by_others_ = map_.settle();
    is_first_ = false;
}

}  // namespace ddp
