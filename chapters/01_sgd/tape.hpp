#pragma once
// The tape: what was computed, in order, so that it can be walked backwards.
//
// Define-by-run: every operation that runs in forward records itself, with a function that knows
// its own derivative. backward() walks the record from the loss to the parameters and applies the
// chain rule. The graph is new in every step: a branch that is not taken is simply not on the tape.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "01_sgd/tensor.hpp"

namespace ddp {

// A tensor that is learned. Its gradient is the sum over all backward passes since it was cleared,
// or absent: nobody has computed one, which is not the same as zero.
class Parameter {
  public:
    Parameter(std::string name, Tensor value) : name(std::move(name)), value(std::move(value)) {}
    Parameter(const Parameter&) = delete;
    Parameter& operator=(const Parameter&) = delete;

    bool has_gradient() const { return has_gradient_; }
    // Throws std::logic_error if it is absent.
    const Tensor& gradient() const;
    // "zero_grad": absent again. The memory stays for the next one.
    void clear_gradient() { has_gradient_ = memory_is_zero_ = false; }
    // The same by somebody who has also enqueued zeros for the memory: the next backward adds to
    // them. Whoever else writes there while the gradient is absent says clear_gradient().
    void clear_zeroed_gradient();
    bool memory_is_zero() const { return memory_is_zero_; }
    // From now on the gradient lives in `place`, a tensor of the value's size; a present one is not
    // moved.
    void place_gradient(Tensor place);
    // Where backward writes: allocated at first use, present from then on.
    Tensor& gradient_for_writing();

    std::string name;
    Tensor value;
    bool is_frozen = false;  // backward passes it over

  private:
    Tensor gradient_;
    bool has_gradient_ = false;
    bool memory_is_zero_ = false;  // of an absent gradient
};

class Tape;

// A value on the tape: the result of an operation, a parameter, or a constant.
struct Variable {
    Tape* tape = nullptr;
    int node = -1;

    const Tensor& value() const;
};

// Where an operation writes the gradient of one of its inputs. If `accumulate` is false the memory
// holds nothing yet: overwrite it. If it is true another operation was there before, or there are
// zeros: add.
struct GradientTarget {
    Tensor tensor;
    bool accumulate;
};

class Tape {
  public:
    // The gradients of an operation's inputs, asked for one by one.
    class InputGradients {
      public:
        // False for an input that no parameter feeds: nobody needs its gradient.
        bool is_wanted(std::size_t input) const;
        GradientTarget target(std::size_t input);

      private:
        friend class Tape;
        InputGradients(Tape& tape, int node) : tape_(tape), node_(node) {}
        Tape& tape_;
        int node_;
    };
    // Given the gradient of its output, an operation computes those of its inputs (on the device's
    // stream).
    using Backward = std::function<void(const Tensor& output_gradient, InputGradients& inputs)>;

    struct Node {
        std::string operation;
        Tensor value;
        std::vector<int> inputs;  // nodes; always earlier ones
        Backward backward;
        std::shared_ptr<Parameter> parameter;  // of a leaf
        bool needs_gradient = false;           // a parameter that is not frozen feeds it
        Tensor gradient;                       // while backward runs, or for good if retained
    };

    explicit Tape(Device& device) : device_(device) {}
    Tape(const Tape&) = delete;
    Tape& operator=(const Tape&) = delete;

    Device& device() { return device_; }
    Variable constant(Tensor value, std::string label = "constant");
    // The same parameter, used twice, is one leaf: its gradient is final when both uses have
    // contributed.
    Variable parameter(const std::shared_ptr<Parameter>& parameter);
    Variable record(std::string operation, Tensor value, const std::vector<Variable>& inputs,
                    Backward backward);

    // Adds d loss / d parameter to every parameter that `loss` (one element) depends on, multiplied
    // by `scale`. `is_final` is called for each of them, once, as soon as no further contribution
    // can come, in the order in which backward reaches them: the gradient's last kernel has then
    // been enqueued.
    using Visitor = std::function<void(Parameter& parameter)>;
    void backward(Variable loss, const Visitor& is_final = {}, float scale = 1.0f);

    // The parameters, frozen ones left out, that these results depend on: what backward would
    // visit.
    std::vector<std::shared_ptr<Parameter>> parameters_behind(
        const std::vector<Variable>& results) const;

    // Keeps every node's gradient after backward, to look at; otherwise each is dropped when it has
    // been used.
    void retain_gradients() { retain_gradients_ = true; }
    const std::vector<Node>& nodes() const { return nodes_; }
    // Forgets everything: the next step begins.
    void clear() { nodes_.clear(); }

  private:
    std::vector<bool> reached_from(const std::vector<Variable>& results) const;
    std::vector<int> count_uses(const std::vector<bool>& reached) const;
    int add(Node node);

    Device& device_;
    std::vector<Node> nodes_;
    bool retain_gradients_ = false;
};

}  // namespace ddp
