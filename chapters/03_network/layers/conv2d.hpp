#pragma once
// Convolution: every output is a weighted sum of a small window of the input, the same weights for
// every place of the picture.
//
// Computed as a product of matrices ("im2col"): column p of the matrix `columns` holds the window
// of output pixel p, so that weight x columns is all outputs. The matrix is kernel^2 times as large
// as the input; it is made for a few samples at a time, and made again on the way back.
#include <cstddef>

#include "03_network/layer.hpp"
#include "common/data/random.hpp"

namespace ddp {

// How large the matrix may grow: on a CPU it should stay in the nearer caches, on a GPU it should
// give every multiprocessor work.
#if defined(DDP_CUDA)
inline constexpr std::size_t columns_bytes = std::size_t{256} << 20;
#else
inline constexpr std::size_t columns_bytes = std::size_t{512} << 10;
#endif

struct Conv2dShape {
    int in_channels, out_channels;
    int kernel;  // height and width of the window
    int stride = 1;
    int padding = 0;  // zeros around the picture
};

class Conv2d : public Module {
  public:
    // weight [out_channels, in_channels, kernel, kernel] and bias [out_channels] begin within
    // +-1 / sqrt(in_channels * kernel^2), as in PyTorch.
    Conv2d(std::string name, Device& device, Conv2dShape shape, Random& random);

    // [batch, in_channels, height, width] -> [batch, out_channels, out_height, out_width]
    Variable forward(Variable input) override;
    Parameters parameters() const override { return {weight, bias}; }

    const std::shared_ptr<Parameter> weight;
    const std::shared_ptr<Parameter> bias;

  private:
    Conv2dShape shape_;
};

}  // namespace ddp
