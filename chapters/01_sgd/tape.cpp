// The tape of one step of the house model: twelve boxes, each with its value from forward and its
// gradient from backward. (The first house, all parameters 0: the numbers of the README's graph.)
//
//     forward appends boxes, from left to right, and fills in the values ------------------------>
//       0    1    2     3      4      5      6      7     8     9       10        11
//     +----+----+----+------+-----+-----+-----+-----+-----+-----+----------+--------+
//     | x1 | x2 | y  |  w1  |  *  | w2  |  *  |  +  |  b  |  +  | subtract | square |
//     |    |    |    |      | 0,3 |     | 1,5 | 4,6 |     | 7,8 |   9,2    |   10   |  inputs
//     |  6 |  2 | 15 |   0  |  0  |  0  |  0  |  0  |  0  |  0  |   -15    |  225   |  value
//     |    |    |    | -180 | -30 | -60 | -30 | -30 | -30 | -30 |   -30    |    1   |  gradient
//     +----+----+----+------+-----+-----+-----+-----+-----+-----+----------+--------+
//     <------------- backward visits them from right to left, and fills in the gradients ---------
//
// A box's inputs are always to its left. So when backward reaches a box, it has visited all boxes
// that use it, and the box's gradient is complete.
//
// The rest of this file is bookkeeping: whether a gradient is the first or is added to another,
// and which parameter's gradient has just become final. (Which boxes matter: tape_uses.cpp.)
#include "01_sgd/tape.hpp"

#include <algorithm>
#include <stdexcept>

namespace ddp {

// ---- A parameter and its gradient: absent or there

const Tensor& Parameter::gradient() const {
    if (!has_gradient_)
        throw std::logic_error("parameter '" + name +
                               "' has no gradient: no backward pass has reached it since the last "
                               "clear_gradient()");
    return gradient_;
}

Tensor& Parameter::gradient_for_writing() {
    // The memory is allocated once and kept from step to step; only `has_gradient_` changes.
    if (gradient_.is_empty())
        gradient_ = Tensor(value.device(), value.shape());
    has_gradient_ = true;
    return gradient_;
}

// ---- Forward: boxes are appended

const Tensor& Variable::value() const {
    return is_recorded() ? tape->nodes()[node].value : unrecorded;
}

Variable Tape::add(Node node) {
    if (recording_ == Recording::off)
        return {this, -1, std::move(node.value)};
    nodes_.push_back(std::move(node));
    return {this, static_cast<int>(nodes_.size()) - 1};
}

Variable Tape::constant(Tensor value, std::string label) {
    Node node;
    node.operation = std::move(label);
    node.value = std::move(value);
    return add(std::move(node));
}

Variable Tape::parameter(const std::shared_ptr<Parameter>& parameter) {
    // A leaf that is on the tape already is used again.
    const auto known = std::find_if(nodes_.begin(), nodes_.end(),
                                    [&](const Node& node) { return node.parameter == parameter; });
    if (known != nodes_.end())
        return {this, static_cast<int>(known - nodes_.begin())};
    // The box shares the parameter's memory: the step changes the value in place.
    Node node;
    node.operation = parameter->name;
    node.value = parameter->value;
    node.parameter = parameter;
    node.needs_gradient = !parameter->is_frozen;
    return add(std::move(node));
}

Variable Tape::record(std::string operation, Tensor value, const std::vector<Variable>& inputs,
                      Backward backward) {
    if (recording_ == Recording::off)
        return {this, -1, std::move(value)};
    Node node;
    node.operation = std::move(operation);
    node.value = std::move(value);
    node.backward = std::move(backward);
    // A result needs a gradient if one of its inputs does. So backward finds the parameters.
    for (const Variable& input : inputs) {
        node.inputs.push_back(input.node);
        node.needs_gradient |= nodes_.at(input.node).needs_gradient;
    }
    return add(std::move(node));
}

// ---- Backward: from the last box to the first

bool Tape::InputGradients::is_wanted(std::size_t input) const {
    const int node = tape_.nodes_[node_].inputs.at(input);
    return tape_.nodes_[node].needs_gradient;
}

GradientTarget Tape::InputGradients::target(std::size_t input) {
    Node& node = tape_.nodes_[tape_.nodes_[node_].inputs.at(input)];
    // A parameter's gradient outlives the tape. If it is there already, an operation adds to it.
    if (node.parameter) {
        const bool accumulate = node.parameter->has_gradient();
        node.gradient = node.parameter->gradient_for_writing();
        return {node.gradient, accumulate};
    }
    // The gradient of any other box lives on the tape. Its first user overwrites, the others add.
    const bool accumulate = !node.gradient.is_empty();
    if (!accumulate)
        node.gradient = Tensor(tape_.device_, node.value.shape());
    return {node.gradient, accumulate};
}

void Tape::backward(Variable loss, const Visitor& is_final, float scale) {
    if (!loss.is_recorded())
        throw std::logic_error(
            "backward needs what forward has recorded, and this loss was computed on a tape that "
            "does not record (Recording::off)");
    Node& last = nodes_.at(loss.node);
    if (last.value.size() != 1)
        throw std::invalid_argument("backward starts from one number, a loss; this has the shape " +
                                    to_string(last.value.shape()));
    // Before the walk: which boxes matter, and how many contributions will each of them get?
    const std::vector<bool> reached = reached_from({loss});
    std::vector<int> uses_left = count_uses(reached);
    // The walk begins with d loss / d loss = 1, times `scale`.
    last.gradient = first_gradient(scale).reshaped(last.value.shape());
    for (int i = loss.node; i >= 0; i--) {
        Node& box = nodes_[i];
        // Skip what the loss does not depend on, what is not learned, and the parameters: they
        // have no inputs.
        if (!reached[i] || !box.needs_gradient || box.parameter)
            continue;
        // The chain rule: the operation adds its contributions to the gradients of its inputs.
        InputGradients inputs(*this, i);
        box.backward(box.gradient, inputs);
        require_written(box);
        // This box's own gradient has been used.
        if (!retain_gradients_)
            box.gradient = Tensor();
        // A parameter's gradient is final if this was the last box that uses it.
        for (int input : box.inputs) {
            const Node& used = nodes_[input];
            if (--uses_left[input] == 0 && used.parameter && used.needs_gradient && is_final)
                is_final(*used.parameter);
        }
    }
}

}  // namespace ddp
