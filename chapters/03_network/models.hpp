#pragma once
// The two networks of the book, and the pictures that they learn.
#include <memory>
#include <string>
#include <vector>

#include "03_network/layers/sequential.hpp"
#include "common/data/fashion_mnist.hpp"
#include "common/data/random.hpp"
#include "common/report/options.hpp"

namespace ddp {

// Makes a multilayer perceptron with widths[0] inputs, a linear layer for each further width, and
// ReLU between them. Takes [batch, ...] with widths[0] numbers per sample; returns
// [batch, widths.back()].
std::unique_ptr<Sequential> make_mlp(Device& device, Random& random,
                                     const std::vector<int>& widths = {784, 1024, 1024, 10});

// Makes a convolutional network: twice 3 x 3 convolution, BatchNorm, ReLU and 2 x 2 pooling, to 32
// and then 64 channels, and one linear layer. Takes [batch, 1, 28, 28]; returns [batch, 10].
std::unique_ptr<Sequential> make_cnn(Device& device, Random& random);

// Makes the network called `name`, "mlp" or "cnn". Throws std::invalid_argument for another name.
std::unique_ptr<Sequential> make_model(const std::string& name, Device& device, Random& random);

// Reads Fashion-MNIST from the folder that --data names, or else from the usual one. With --quick
// only the first 6,000 training and 2,000 test pictures are kept. Throws as load_fashion_mnist.
FashionMnist load_data(const CommonOptions& common);
// Throws OptionError if a --batch has more pictures than there are.
void require_batch(int batch, const LabelledImages& images);

}  // namespace ddp
