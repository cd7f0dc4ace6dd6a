#pragma once
// The matrix products of a step of the MLP, and nothing else: what BLAS alone would take.
//
//     forward    y = x W^T                 for each linear layer
//     backward   dW = dy^T x, dx = dy W    for each, from the last one; the first needs no dx
#include <vector>

#include "03_network/layers/matrix.hpp"
#include "15_overlap/support/timed_training.hpp"

namespace ddp {

class StepProducts {
  public:
    // Takes the linear layers among `parameters`, in their order, and `batch` samples a step.
    // `rank` and `device` must outlive this object.
    StepProducts(Rank& rank, Device& device, const Parameters& parameters, int batch,
                 Random& random);

    // Makes the products of `steps` steps. Returns the seconds from when all ranks began until all
    // have ended. All ranks call it together.
    double run(int steps);

  private:
    void step();
    static Tensor random_tensor(Device& device, const Shape& shape, Random& random);

    Rank& rank_;
    Device& device_;
    std::vector<Tensor> x_, dy_;       // [batch, width], by the place between layers
    std::vector<Tensor> weight_, dw_;  // [outputs, inputs], by layer
};

inline Tensor StepProducts::random_tensor(Device& device, const Shape& shape, Random& random) {
    std::vector<float> values(element_count(shape));
    for (float& value : values)
        value = random.uniform(-1, 1);
    return Tensor(device, shape, values);
}

inline StepProducts::StepProducts(Rank& rank, Device& device, const Parameters& parameters,
                                  int batch, Random& random)
    : rank_(rank), device_(device) {
    const auto add_place = [&](int width) {
        x_.push_back(random_tensor(device, {batch, width}, random));
        dy_.emplace_back(device, x_.back().shape());
    };
    for (const auto& parameter : parameters)
        if (const Shape& shape = parameter->value.shape(); shape.size() == 2) {
            if (x_.empty())
                add_place(shape[1]);
            add_place(shape[0]);
            weight_.push_back(random_tensor(device, shape, random));
            dw_.emplace_back(device, shape);
        }
}

inline double StepProducts::run(int steps) {
    return time_steps(rank_, device_.stream(), steps, [this] { step(); });
}

inline void StepProducts::step() {
    // The form that the layers ask for on a CPU is y^T = W x^T (multiply_and_add_bias says why).
    // The result takes dy's place, which has the same size: passed on, it would grow from step to
    // step.
    for (std::size_t i = 0; i < weight_.size(); i++)
        multiply_matrices(device_, matrix(weight_[i]), transposed(matrix(x_[i])),
                          dy_[i + 1].data());
    for (std::size_t i = weight_.size(); i-- > 0;) {
        multiply_matrices(device_, transposed(matrix(dy_[i + 1])), matrix(x_[i]), dw_[i].data());
        if (i > 0)
            multiply_matrices(device_, matrix(dy_[i + 1]), matrix(weight_[i]), dy_[i].data());
    }
}

}  // namespace ddp
