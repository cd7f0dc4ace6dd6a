#pragma once
// What a network is made of: a layer holds its parameters and records what it computes on the tape
// of its input. A network of layers is a layer itself.
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
    // The names of what it holds begin with `name` and a dot: "linear1.weight".
    explicit Module(std::string name) : name_(std::move(name)) {}
    virtual ~Module() = default;
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;

    // The first dimension of `input` is the batch. Throws std::invalid_argument if the others are
    // not what this layer takes.
    virtual Variable forward(Variable input) = 0;

    // In the order of the network, each once.
    virtual Parameters parameters() const { return {}; }
    virtual std::vector<NamedTensor> buffers() const { return {}; }

    // Some layers compute otherwise when a model is used than when it is trained. New ones are in
    // training.
    virtual void set_training(bool is_training) { is_training_ = is_training; }
    bool is_training() const { return is_training_; }

    const std::string& name() const { return name_; }

  private:
    std::string name_;
    bool is_training_ = true;
};

}  // namespace ddp
