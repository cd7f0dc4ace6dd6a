#pragma once
// The two networks of the book, for pictures of 28 x 28 in ten classes unless told otherwise.
#include <memory>
#include <string>
#include <vector>

#include "03_network/layers/sequential.hpp"
#include "common/data/random.hpp"

namespace ddp {

// A multilayer perceptron: widths[0] inputs, linear layers with ReLU between them, as many outputs
// as the last width says. Takes [batch, ...] with widths[0] numbers a sample.
std::unique_ptr<Sequential> make_mlp(Device& device, Random& random,
                                     const std::vector<int>& widths = {784, 1024, 1024, 10});

// A convolutional network: twice 3 x 3 convolution, BatchNorm, ReLU and 2 x 2 pooling, to 32 and
// then 64 channels, and one linear layer. Takes [batch, 1, 28, 28].
std::unique_ptr<Sequential> make_cnn(Device& device, Random& random);

// "mlp" or "cnn".
std::unique_ptr<Sequential> make_model(const std::string& name, Device& device, Random& random);

}  // namespace ddp
