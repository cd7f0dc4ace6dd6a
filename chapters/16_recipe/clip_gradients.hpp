#pragma once
// Gradient clipping: a gradient that is longer than usual keeps its direction and loses length.
// (Pascanu, Mikolov and Bengio, 2013; torch.nn.utils.clip_grad_norm_.)
//
//     ddp.backward(loss);
//     clip_grad_norm(model.parameters(), 1.0);  // after the average, not before
//     optimizer.step();
#include <functional>

#include "01_sgd/sgd.hpp"

namespace ddp {

// Scales all gradients by max_norm / (norm + 1e-6) if that is less than 1, where `norm` is the
// length of all gradients taken as one vector. Returns the norm before clipping, one number on the
// device. Enqueues only. Ranks with the same gradients get the same bits, without a message; if
// they have different ones, `add_ranks` enqueues the sum over the ranks, in place, of this rank's
// sum of squares. An infinite norm leaves NaN in the gradients, as in PyTorch. Throws
// std::invalid_argument if there is no gradient, or if max_norm is not a positive number.
using AddRanks = std::function<void(const BasicTensor<double>& sum_of_squares)>;
Tensor clip_grad_norm(const Parameters& parameters, double max_norm,
                      const AddRanks& add_ranks = {});

}  // namespace ddp
