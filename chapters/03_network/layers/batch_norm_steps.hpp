#pragma once
// The steps of batch normalisation, one by one, on x [batch, channels, height, width]. They are for
// layers that take a channel's mean and variance over something other than one batch. Each step
// enqueues its work on the device's stream. The batch may be empty.
#include "01_sgd/tape.hpp"

namespace ddp {

// The numbers that normalise each channel; both tensors are [channels].
struct Moments {
    Tensor mean, inverse_std;
};

// The mean of each plane (one channel of one picture), and the sum of the squared distances from
// that mean. Both tensors are [batch, channels].
struct PlaneMoments {
    Tensor means, squares;
};
// Computes the moments of every plane of x.
PlaneMoments moments_of_planes(const Tensor& x);

// Returns (x - mean) * inverse_std * weight + bias, in the shape of x.
Tensor normalised(const Tensor& x, const Moments& moments, const Tensor& weight,
                  const Tensor& bias);

// Two sums over each channel, from which all gradients follow: the sum of dy, and the sum of
// dy * normalised x. Both tensors are [channels].
struct GradientSums {
    Tensor dy, product;
};
// Computes both sums for every channel.
GradientSums sums_of_gradients(const Tensor& x, const Moments& moments, const Tensor& dy);

// Writes or adds the gradients of weight and bias, if they are wanted: they are the sums
// themselves. `gradients` belongs to an operation whose inputs are x, weight and bias.
void give_parameter_gradients(const GradientSums& sums, Tape::InputGradients& gradients);
// Writes or adds the gradient of x, which must be wanted. `share` is 1 divided by the number of
// values that each sum is over, or 0 where mean and variance are constants.
void give_input_gradient(const Tensor& x, const Moments& moments, const Tensor& weight,
                         const GradientSums& sums, float share, const Tensor& dy,
                         Tape::InputGradients& gradients);

}  // namespace ddp
