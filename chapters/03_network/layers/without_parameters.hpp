#pragma once
// The layers that have nothing to learn.
#include "03_network/layer.hpp"

namespace ddp {

// y = max(x, 0), element by element. Its derivative at 0 is taken to be 0.
class Relu : public Module {
  public:
    using Module::Module;
    Variable forward(Variable input) override;
};

// Flattens [batch, d1, d2, ...] to [batch, d1 * d2 * ...]. Forward copies nothing: the result is
// the same memory with another shape.
class Flatten : public Module {
  public:
    using Module::Module;
    Variable forward(Variable input) override;
};

// Max pooling: the largest value of each window. The gradient goes back to the pixel that the value
// came from; among equal ones, to the first.
class MaxPool2d : public Module {
  public:
    // Uses windows of kernel x kernel pixels, each `stride` pixels from the next. Pixels at the
    // edge that do not fill a window are left out.
    MaxPool2d(std::string name, int kernel, int stride);
    // Uses windows side by side.
    MaxPool2d(std::string name, int kernel) : MaxPool2d(std::move(name), kernel, kernel) {}

    // Computes [batch, channels, height, width] -> [batch, channels, out_height, out_width]. Throws
    // std::invalid_argument if the pictures are smaller than a window.
    Variable forward(Variable input) override;

  private:
    int kernel_, stride_;
};

}  // namespace ddp
