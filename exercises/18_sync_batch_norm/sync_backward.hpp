#pragma once
// The contract of the exercise sync_backward: the gradients of a normalisation whose statistics are
// those of all ranks. On the host, in doubles, and for one channel, so that you can think about the
// sums alone.
#include <vector>

#include "exercises/not_implemented.hpp"
#include "exercises/sum_over_ranks.hpp"

namespace ddp {

// The state that forward has left on this rank: y = weight * (x - mean) * inverse_std + bias. mean
// and inverse_std are the same on all ranks; x and dy are this rank's own values of the channel. A
// rank may have none, and ranks may have unequal numbers of them.
struct Normalised {
    std::vector<double> x, dy;
    double mean, inverse_std;  // 1 / sqrt(variance + eps), and the variance is divided by the count
    double weight;
};

struct NormalisedGradients {
    std::vector<double> x;        // gradient of the sum of all ranks' losses
    double weight = 0, bias = 0;  // of this rank's own loss: DDP averages them
};

// Task batch_norm. Returns the gradients of batch normalisation. dy is the gradient of this rank's
// loss. The number of values on other ranks is not known. Every rank calls sum_over_ranks once,
// with at most 3 numbers.
NormalisedGradients batch_norm_backward(const Normalised& forward,
                                        const SumOverRanks& sum_over_ranks);

// Task rms_norm. Returns the gradients of a normalisation that transformers use: y = weight * x /
// rms, where rms is sqrt(mean of all x² + eps), over all ranks. Nothing is subtracted, and there is
// no bias: forward.mean and the gradient of bias are 0, and forward.inverse_std is 1 / rms. Every
// rank calls sum_over_ranks once, with at most 2 numbers.
NormalisedGradients rms_norm_backward(const Normalised& forward,
                                      const SumOverRanks& sum_over_ranks);

// Task loss_scale. Returns the factor by which this rank must multiply its loss, so that the
// gradients become those of the mean over all `all` samples. Each rank's loss is the mean over its
// own `own` samples, 1 or more, and DDP divides the sum of the ranks' gradients by world_size.
double loss_scale(int own, int all, int world_size);

}  // namespace ddp
