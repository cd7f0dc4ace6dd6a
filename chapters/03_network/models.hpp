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

// Returns the widths of one for these samples: their numbers, `hidden`, their classes.
std::vector<int> mlp_widths(const LabelledImages& samples,
                            const std::vector<int>& hidden = {1024, 1024});

// Makes a convolutional network: twice 3 x 3 convolution, BatchNorm, ReLU and 2 x 2 pooling, to 32
// and then 64 channels, and one linear layer. Takes [batch, 1, height, width]; returns
// [batch, classes].
std::unique_ptr<Sequential> make_cnn(Device& device, Random& random, int height = 28,
                                     int width = 28, int classes = 10);

// Makes the network called `name`, "mlp" or "cnn", for Fashion-MNIST or for `samples`. Throws
// std::invalid_argument for another name, and OptionError for samples that a cnn cannot take.
std::unique_ptr<Sequential> make_model(const std::string& name, Device& device, Random& random);
std::unique_ptr<Sequential> make_model(const std::string& name, Device& device, Random& random,
                                       const LabelledImages& samples);

// Reads Fashion-MNIST from the usual folder, or the data set that --data names: a folder of such
// files, or a CSV file. With --quick only the first 6,000 training and 2,000 test pictures are
// kept. Throws as load_fashion_mnist and load_table.
FashionMnist load_data(const CommonOptions& common);
// Throws OptionError if a --batch has more pictures than there are.
void require_batch(int batch, const LabelledImages& images);

}  // namespace ddp
