// The first step decides:
//
//     step 1    all gradients in one bucket, which is sent when backward has ended; a parameter
//               without a gradient is unused; the map says whether another rank uses it
//     later     unused parameters count as ready when backward begins, and nothing is searched;
//               a backward that reaches other parameters than the first one is an error
#include "17_unused_parameters/static_graph.hpp"

#include <stdexcept>

namespace ddp {

std::string names_of(const Parameters& parameters) {
    std::string names;
    for (const auto& parameter : parameters)
        names += (names.empty() ? "" : ", ") + parameter->name;
    return names;
}

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
