#pragma once
// The largest value of each window; the gradient goes back to where it came from (of equal values:
// the first).
#include "03_network/layer.hpp"

namespace ddp {

class MaxPool2d : public Module {
  public:
    // A window of kernel x kernel pixels, moved by `stride` pixels; what does not fill a window is
    // left out.
    MaxPool2d(std::string name, int kernel, int stride);
    // Windows side by side.
    MaxPool2d(std::string name, int kernel) : MaxPool2d(std::move(name), kernel, kernel) {}

    // [batch, channels, height, width] -> [batch, channels, out_height, out_width]
    Variable forward(Variable input) override;

  private:
    int kernel_, stride_;
};

}  // namespace ddp
