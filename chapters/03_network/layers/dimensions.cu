// A tensor [2, 3, 4], and a part of it along dimension 1, from place 1 on, of 2 places. To the
// kernels both are rows, one for each index of the dimensions in front, and the part is a band of
// columns of the whole:
//
//     whole, 2 rows of 3 * 4 numbers      . . . .  x x x x  x x x x
//     part, 2 rows of 2 * 4 numbers                x x x x  x x x x
//
//     slice    part = band of the whole       backward   whole's gradient = dy in the band, else 0
//     concat   band = part, for each input    backward   an input's gradient = its band of dy
//     mean     y = sum of n places / n        backward   each place's gradient = dy / n
#include "03_network/layers/dimensions.hpp"

#include <stdexcept>
#include <string>

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// `width` columns of a matrix with rows of `row` numbers, from column `first` on.
struct Band {
    std::size_t row, first, width;

    // Returns where in the whole element i of the part is.
    __host__ __device__ std::size_t place(std::size_t i) const {
        return i / width * row + first + i % width;
    }
};

// part (+)= band of the whole. `n` is the size of the part.
__global__ void take_band(std::size_t n, Band band, const float* whole, float* part,
                          bool accumulate) {
    for (std::size_t i : grid_range(n)) {
        const float value = whole[band.place(i)];
        part[i] = accumulate ? part[i] + value : value;
    }
}

// Band of the whole (+)= part. What is beside the band stays.
__global__ void put_band(std::size_t n, Band band, const float* part, float* whole,
                         bool accumulate) {
    for (std::size_t i : grid_range(n)) {
        float& value = whole[band.place(i)];
        value = accumulate ? value + part[i] : part[i];
    }
}

// y = the mean of `places` numbers, `inner` apart. A thread takes a whole mean, so the order of its
// sum is always the same.
__global__ void mean_forward(std::size_t n, int places, std::size_t inner, const float* x,
                             float* y) {
    for (std::size_t i : grid_range(n)) {
        const float* from = x + i / inner * places * inner + i % inner;
        float sum = 0.0f;
        for (int place = 0; place < places; place++)
            sum += from[place * inner];
        y[i] = sum / static_cast<float>(places);
    }
}

// dx (+)= dy / places. `n` is the size of dx.
__global__ void mean_backward(std::size_t n, int places, std::size_t inner, const float* dy,
                              float* dx, bool accumulate) {
    for (std::size_t i : grid_range(n)) {
        const float contribution =
            dy[i / inner / places * inner + i % inner] / static_cast<float>(places);
        dx[i] = accumulate ? dx[i] + contribution : contribution;
    }
}

void require_dimension(const char* operation, const Tensor& x, std::size_t dimension) {
    if (dimension >= x.shape().size())
        throw std::invalid_argument(std::string(operation) + " needs a tensor with a dimension " +
                                    std::to_string(dimension) + ", counted from 0, and " +
                                    to_string(x.shape()) + " has none");
}

// Returns the size of one place of a dimension: the product of the dimensions behind it.
std::size_t size_behind(const Tensor& x, std::size_t dimension) {
    const auto behind = x.shape().begin() + static_cast<int>(dimension) + 1;
    return element_count(Shape(behind, x.shape().end()));
}

// Returns the shape of x with `length` places in that dimension.
Shape with_length(const Tensor& x, std::size_t dimension, int length) {
    Shape shape = x.shape();
    shape[dimension] = length;
    return shape;
}

// Returns the band of places first to first + length of a dimension with `places` places.
Band band_of(std::size_t inner, int places, int first, int length) {
    return {places * inner, first * inner, length * inner};
}

}  // namespace

Variable concat(const std::vector<Variable>& inputs, std::size_t dimension) {
    if (inputs.empty())
        throw std::invalid_argument("concat needs at least one tensor");
    const Tensor& like = inputs[0].value();
    require_dimension("concat", like, dimension);
    int places = 0;
    for (const Variable& input : inputs) {
        const Tensor& x = input.value();
        require_dimension("concat", x, dimension);
        if (with_length(x, dimension, 0) != with_length(like, dimension, 0))
            throw std::invalid_argument("concat needs tensors that differ only in dimension " +
                                        std::to_string(dimension) + ", not " +
                                        to_string(like.shape()) + " and " + to_string(x.shape()));
        places += x.dim(dimension);
    }
    const std::size_t inner = size_behind(like, dimension);
    const Tensor whole(like.device(), with_length(like, dimension, places));
    std::vector<Band> bands;
    int first = 0;
    for (const Variable& input : inputs) {
        const Tensor& x = input.value();
        bands.push_back(band_of(inner, places, first, x.dim(dimension)));
        launch(x.device().stream(), grid_for(x.size()), put_band, x.size(), bands.back(), x.data(),
               whole.data(), false);
        first += x.dim(dimension);
    }
    return inputs[0].tape->record(
        "concat", whole, inputs, [bands](const Tensor& dy, Tape::InputGradients& gradients) {
            for (std::size_t i = 0; i < bands.size(); i++) {
                if (!gradients.is_wanted(i))
                    continue;
                const GradientTarget dx = gradients.target(i);
                launch(dy.device().stream(), grid_for(dx.tensor.size()), take_band,
                       dx.tensor.size(), bands[i], dy.data(), dx.tensor.data(), dx.accumulate);
            }
        });
}

Variable slice(Variable x, std::size_t dimension, int first, int length) {
    const Tensor& whole = x.value();
    require_dimension("slice", whole, dimension);
    if (first < 0 || length < 1 || length > whole.dim(dimension) - first)
        throw std::invalid_argument("slice cannot take " + std::to_string(length) +
                                    " places from place " + std::to_string(first) +
                                    " on along dimension " + std::to_string(dimension) + " of " +
                                    to_string(whole.shape()));
    const Band band = band_of(size_behind(whole, dimension), whole.dim(dimension), first, length);
    const Tensor part(whole.device(), with_length(whole, dimension, length));
    launch(part.device().stream(), grid_for(part.size()), take_band, part.size(), band,
           whole.data(), part.data(), false);
    return x.tape->record("slice", part, {x},
                          [band](const Tensor& dy, Tape::InputGradients& gradients) {
                              if (!gradients.is_wanted(0))
                                  return;
                              GradientTarget dx = gradients.target(0);
                              if (!dx.accumulate)
                                  fill(dx.tensor, 0.0f);  // beside the band
                              launch(dy.device().stream(), grid_for(dy.size()), put_band, dy.size(),
                                     band, dy.data(), dx.tensor.data(), true);
                          });
}

Variable mean(Variable x, std::size_t dimension) {
    const Tensor& values = x.value();
    require_dimension("mean", values, dimension);
    const int places = values.dim(dimension);
    if (places == 0)
        throw std::invalid_argument("mean needs at least one number, and dimension " +
                                    std::to_string(dimension) + " of " + to_string(values.shape()) +
                                    " has none");
    Shape shape = values.shape();
    shape.erase(shape.begin() + static_cast<int>(dimension));
    const std::size_t inner = size_behind(values, dimension);
    const Tensor y(values.device(), shape);
    launch(y.device().stream(), grid_for(y.size()), mean_forward, y.size(), places, inner,
           values.data(), y.data());
    return x.tape->record("mean", y, {x}, [=](const Tensor& dy, Tape::InputGradients& gradients) {
        if (!gradients.is_wanted(0))
            return;
        const GradientTarget dx = gradients.target(0);
        launch(dy.device().stream(), grid_for(dx.tensor.size()), mean_backward, dx.tensor.size(),
               places, inner, dy.data(), dx.tensor.data(), dx.accumulate);
    });
}

}  // namespace ddp
