#pragma once
// What the networks of the book learn from.
#include "common/data/fashion_mnist.hpp"
#include "common/report/options.hpp"

namespace ddp {

// Fashion-MNIST from where --data says, or from where it usually is; with --quick a tenth of it.
// Throws as load_fashion_mnist.
FashionMnist load_data(const CommonOptions& common);

}  // namespace ddp
