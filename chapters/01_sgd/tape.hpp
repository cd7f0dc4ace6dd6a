#pragma once
// The tape: what was computed, in order, so that it can be walked backwards.
//
// Every operation that runs in forward records itself, with a function that knows its own
// derivative. backward() walks the record from the loss to the parameters and applies the chain
// rule. The strip of boxes at the top of tape.cpp is what one step of the chapter's model leaves.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "01_sgd/tensor.hpp"

namespace ddp {

// A tensor that is learned. Its gradient is the sum over all backward passes since it was last
// cleared. It is absent before the first of these passes, which is not the same as zero.
class Parameter {
  public:
    Parameter(std::string name, Tensor value) : name(std::move(name)), value(std::move(value)) {}
    Parameter(const Parameter&) = delete;
    Parameter& operator=(const Parameter&) = delete;

    bool has_gradient() const { return has_gradient_; }
    // Returns the gradient, in the shape of the value. Throws std::logic_error if it is absent.
    const Tensor& gradient() const;
    // Makes the gradient absent again ("zero_grad"). Keeps its memory for the next gradient.
    void clear_gradient() { has_gradient_ = false; }
    // Makes the gradient present and returns it, in the shape of the value. Allocates its memory at
    // first use. If the gradient was absent, its values are undefined: overwrite them.
    Tensor& gradient_for_writing();
    // Moves the gradient to `memory`, a tensor of the value's size, and makes the gradient
    // absent. Values are not copied. Throws std::invalid_argument for another size.
    void place_gradient(Tensor memory);

    std::string name;
    Tensor value;
    bool is_frozen = false;  // backward computes no gradient for it

  private:
    Tensor gradient_;
    bool has_gradient_ = false;
};

class Tape;

// A value on the tape: the result of an operation, a parameter, or a constant.
struct Variable {
    Tape* tape = nullptr;
    int node = -1;
    Tensor unrecorded = {};  // the value itself, if the tape does not record

    // Returns the value from forward.
    const Tensor& value() const;
    bool is_recorded() const { return node >= 0; }
};

// The place where an operation writes the gradient of one of its inputs. If `accumulate` is false,
// the memory is not initialised: overwrite it. If it is true, another operation or an earlier
// backward pass has written there: add.
struct GradientTarget {
    Tensor tensor;
    bool accumulate;
};

// Off: forward computes, and no box is made (PyTorch's torch.no_grad()). A value is freed as soon
// as no Variable has it any more. There can be no backward.
enum class Recording { on, off };

// The record of one forward pass, for one backward pass or several.
class Tape {
  public:
    // The gradients of an operation's inputs, requested one by one.
    class InputGradients {
      public:
        // Returns false for an input that depends on no parameter: its gradient has no use.
        bool is_wanted(std::size_t input) const;
        // Returns the place for the gradient of that input; the operation must write there.
        GradientTarget target(std::size_t input);

      private:
        friend class Tape;
        InputGradients(Tape& tape, int node) : tape_(tape), node_(node) {}
        Tape& tape_;
        int node_;
    };
    // The derivative of an operation. Given the gradient of the output, it enqueues the computation
    // of the inputs' gradients on the device's stream.
    using Backward = std::function<void(const Tensor& output_gradient, InputGradients& inputs)>;

    // One box of the strip.
    struct Node {
        std::string operation;
        Tensor value;
        std::vector<int> inputs;  // indices of nodes, all of them earlier
        Backward backward;
        std::shared_ptr<Parameter> parameter;  // of a leaf
        bool needs_gradient = false;           // it depends on a parameter that is not frozen
        Tensor gradient;                       // during backward; afterwards only if retained
    };

    // `device` must outlive the tape.
    explicit Tape(Device& device, Recording recording = Recording::on)
        : device_(device), recording_(recording) {}
    Tape(const Tape&) = delete;
    Tape& operator=(const Tape&) = delete;

    Device& device() { return device_; }
    // Appends a value that is given and not learned.
    Variable constant(Tensor value, std::string label = "constant");
    // Appends a parameter, or returns its leaf if it is on the tape already. The gradient of a
    // parameter that is used twice is final when both uses have contributed.
    Variable parameter(const std::shared_ptr<Parameter>& parameter);
    // Appends the result of an operation. The operation calls this at the end of its forward.
    Variable record(std::string operation, Tensor value, const std::vector<Variable>& inputs,
                    Backward backward);

    // Adds scale * d loss / d parameter to the gradient of every parameter that `loss` depends on.
    // Calls `is_final` once for each of these parameters, when the last kernel that contributes to
    // its gradient has been enqueued. The order is that in which backward completes them.
    // Throws std::invalid_argument unless `loss` is one number, and std::logic_error if it was not
    // recorded.
    using Visitor = std::function<void(Parameter& parameter)>;
    void backward(Variable loss, const Visitor& is_final = {}, float scale = 1.0f);
    // Removes all nodes: the next step begins.
    void clear() { nodes_.clear(); }

    // ---- The rest can wait

    // Returns the parameters that these results depend on, without the frozen ones. These are the
    // parameters that backward would visit.
    std::vector<std::shared_ptr<Parameter>> parameters_behind(
        const std::vector<Variable>& results) const;

    // Keeps every node's gradient after backward, for inspection. Otherwise each gradient is
    // dropped as soon as it has been used.
    void retain_gradients() { retain_gradients_ = true; }
    // Returns the boxes, in the order of forward.
    const std::vector<Node>& nodes() const { return nodes_; }

  private:
    std::vector<bool> reached_from(const std::vector<Variable>& results) const;
    std::vector<int> count_uses(const std::vector<bool>& reached) const;
    void require_written(const Node& box) const;
    Tensor first_gradient(float scale);
    Variable add(Node node);

    Device& device_;
    const Recording recording_;
    std::vector<Node> nodes_;
    bool retain_gradients_ = false;
    Tensor first_gradient_;  // of the last backward's loss: first_scale_
    float first_scale_ = 0;
};

}  // namespace ddp
