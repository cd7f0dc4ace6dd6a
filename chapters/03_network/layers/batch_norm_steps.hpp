#pragma once
// The steps of which batch normalisation is made, on x [batch, channels, height, width]: for layers
// that take a channel's mean and variance over something else than one batch. Each enqueues its
// work on the device's stream. A batch of no picture is welcome.
#include "01_sgd/tape.hpp"

namespace ddp {

// What normalises a channel, [channels] each.
struct Moments {
    Tensor mean, inverse_std;
};

// Of each plane, which is one channel of one picture: its mean, and the sum of squared distances
// from that. [batch, channels] each.
struct PlaneMoments {
    Tensor means, squares;
};
PlaneMoments moments_of_planes(const Tensor& x);

// (x - mean) * inverse_std * weight + bias
Tensor normalised(const Tensor& x, const Moments& moments, const Tensor& weight,
                  const Tensor& bias);

// Of each channel: the sum of dy, and of dy * normalised x. [channels] each. All gradients follow
// from them.
struct GradientSums {
    Tensor dy, product;
};
GradientSums sums_of_gradients(const Tensor& x, const Moments& moments, const Tensor& dy);

// For an operation on the tape whose inputs are x, weight and bias. To weight and bias, if theirs
// are wanted: the sums themselves.
void give_parameter_gradients(const GradientSums& sums, Tape::InputGradients& gradients);
// To x, where that is wanted. `share` is 1 / the number of values that the sums are over; 0 where
// mean and variance are constants.
void give_input_gradient(const Tensor& x, const Moments& moments, const Tensor& weight,
                         const GradientSums& sums, float share, const Tensor& dy,
                         Tape::InputGradients& gradients);

}  // namespace ddp
