#pragma once
// Convolution: every output pixel is a weighted sum of a small window of the input. The weights are
// the same at every place of the picture.
//
// It is computed as a product of matrices ("im2col"): column p of the matrix `columns` holds the
// window of output pixel p, so weight x columns gives all outputs. The matrix is about kernel^2
// times as large as the input. It is made for a few samples at a time, and made again in backward.
#include <cstddef>

#include "03_network/layer.hpp"
#include "common/data/random.hpp"

namespace ddp {

// The largest size of that matrix. On a CPU it should stay in the nearer caches, on a GPU it should
// give work to every multiprocessor.
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
    // Creates weight [out_channels, in_channels, kernel, kernel] and bias [out_channels]. Their
    // first values are drawn from +-1 / sqrt(in_channels * kernel^2), as in PyTorch.
    Conv2d(std::string name, Device& device, Conv2dShape shape, Random& random);

    // Computes [batch, in_channels, height, width] -> [batch, out_channels, out_height, out_width].
    Variable forward(Variable input) override;
    Parameters parameters() const override { return {weight, bias}; }

    const std::shared_ptr<Parameter> weight;
    const std::shared_ptr<Parameter> bias;

  private:
    Conv2dShape shape_;
};

}  // namespace ddp
