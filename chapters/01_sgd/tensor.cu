#include "01_sgd/tensor.hpp"

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// Sets every element. grid_range gives each thread elements that no other thread has.
__global__ void fill_kernel(std::size_t n, float value, float* data) {
    for (std::size_t i : grid_range(n))
        data[i] = value;
}

}  // namespace

void fill(Tensor& tensor, float value) {
    launch(tensor.device().stream(), grid_for(tensor.size()), fill_kernel, tensor.size(), value,
           tensor.data());
}

std::size_t element_count(const Shape& shape) {
    std::size_t count = 1;
    for (int dim : shape)
        count *= static_cast<std::size_t>(dim);
    return count;
}

std::string to_string(const Shape& shape) {
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); i++)
        text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
    return text + "]";
}

}  // namespace ddp
