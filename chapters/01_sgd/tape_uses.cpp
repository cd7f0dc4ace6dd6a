// The uses of a tape's boxes, which backward must know before it walks: which boxes does a result
// depend on, and how many of them use each? And what later chapters ask of parameters.
#include <stdexcept>

#include "01_sgd/tape.hpp"

namespace ddp {

// Marks the nodes that these results depend on. Inputs stand before their users, so one pass from
// the end finds all of them.
std::vector<bool> Tape::reached_from(const std::vector<Variable>& results) const {
    std::vector<bool> reached(nodes_.size(), false);
    for (const Variable& result : results)
        if (result.is_recorded())
            reached[result.node] = true;
    for (std::size_t i = nodes_.size(); i-- > 0;)
        if (reached[i])
            for (int input : nodes_[i].inputs)
                reached[input] = true;
    return reached;
}

// Counts how many contributions each node's gradient will get.
std::vector<int> Tape::count_uses(const std::vector<bool>& reached) const {
    std::vector<int> uses(nodes_.size(), 0);
    for (std::size_t i = 0; i < nodes_.size(); i++)
        if (reached[i] && nodes_[i].needs_gradient)
            for (int input : nodes_[i].inputs)
                uses[input]++;
    return uses;
}

// Returns `scale` in device memory. Most trainings ask for the same number in every step.
Tensor Tape::first_gradient(float scale) {
    if (first_gradient_.is_empty() || first_scale_ != scale) {
        first_gradient_ = Tensor(device_, {1});
        fill(first_gradient_, scale);
        first_scale_ = scale;
    }
    return first_gradient_;
}

// Throws if the operation of `box` has left a wanted gradient out: no step would ever change the
// parameters that this input depends on.
void Tape::require_written(const Node& box) const {
    for (std::size_t i = 0; i < box.inputs.size(); i++) {
        const Node& input = nodes_[box.inputs[i]];
        if (input.needs_gradient && input.gradient.is_empty())
            throw std::logic_error(
                "the backward of '" + box.operation +
                "' has not written the gradient of its input " + std::to_string(i) +
                (input.parameter ? ", '" + input.parameter->name + "'" : "") +
                ": it must write to target(" + std::to_string(i) + ") where that is wanted");
    }
}

std::vector<std::shared_ptr<Parameter>> Tape::parameters_behind(
    const std::vector<Variable>& results) const {
    const std::vector<bool> reached = reached_from(results);
    std::vector<std::shared_ptr<Parameter>> parameters;
    for (std::size_t i = 0; i < nodes_.size(); i++)
        if (reached[i] && nodes_[i].parameter && nodes_[i].needs_gradient)
            parameters.push_back(nodes_[i].parameter);
    return parameters;
}

void Parameter::place_gradient(Tensor memory) {
    if (memory.size() != value.size())
        throw std::invalid_argument("the gradient of '" + name + "' " + to_string(value.shape()) +
                                    " does not fit into memory of " + to_string(memory.shape()));
    gradient_ = std::move(memory);
    clear_gradient();
}

}  // namespace ddp
