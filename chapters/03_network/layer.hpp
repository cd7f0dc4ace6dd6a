#pragma once
// The interface of a layer. A network of layers is itself a layer.
//
//     forward    x ──► y            computes y, and records on the tape how to go back
//     backward   dx, dW, db ◄── dy  the recorded function; the tape calls it, not the user
//
// A layer knows neither the loss nor its neighbours.
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "01_sgd/sgd.hpp"
#include "01_sgd/tape.hpp"

namespace ddp {

// A tensor that belongs to a model's state but is not learned, such as a running mean.
struct NamedTensor {
    std::string name;  // "norm1.running_mean"
    Tensor value;
};

class Module {
  public:
    // Names the layer. The names of its parameters and buffers begin with `name` and a dot:
    // "linear1.weight".
    explicit Module(std::string name) : name_(std::move(name)) {}
    virtual ~Module() = default;
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;

    // Computes the layer's output and records the operation on the tape of `input`. The first
    // dimension of `input` is the batch. Throws std::invalid_argument if the layer does not accept
    // the other dimensions. A model with several inputs has its own forward instead, and this one
    // throws std::logic_error.
    virtual Variable forward(Variable /*input*/) {
        throw std::logic_error(name_ + " does not take one tensor: call its own forward");
    }

    // Returns the parameters, in the order of the network, each of them once.
    virtual Parameters parameters() const { return {}; }

    // Returns the buffers, in the order of the network.
    virtual std::vector<NamedTensor> buffers() const { return {}; }

    // Switches between training, in which a layer begins, and evaluation. Some layers (BatchNorm)
    // compute differently in the two modes.
    virtual void set_training(bool is_training) { is_training_ = is_training; }
    bool is_training() const { return is_training_; }

    const std::string& name() const { return name_; }

  private:
    std::string name_;
    bool is_training_ = true;
};

}  // namespace ddp
