// The exercise sync_backward: which sums go over all ranks? Read
// exercises/18_sync_batch_norm/README.md first.
#include "exercises/18_sync_batch_norm/sync_backward.hpp"

namespace ddp {
namespace {

// stub
//: Helpers go here.
double normalised(const Normalised& forward, std::size_t i) {
    return (forward.x[i] - forward.mean) * forward.inverse_std;
}

// Returns this rank's gradients of weight and bias: sums over its own values.
NormalisedGradients own_sums(const Normalised& forward) {
    NormalisedGradients own;
    for (std::size_t i = 0; i < forward.x.size(); i++) {
        own.weight += forward.dy[i] * normalised(forward, i);
        own.bias += forward.dy[i];
    }
    return own;
}
// end stub

}  // namespace

NormalisedGradients batch_norm_backward(const Normalised& forward,
                                        const SumOverRanks& sum_over_ranks) {
    // stub: batch_norm
    //: An x moves the mean and the variance, and so the outputs of all ranks.
    NormalisedGradients gradients = own_sums(forward);
    std::vector<double> sums = {gradients.bias, gradients.weight,
                                static_cast<double>(forward.x.size())};
    sum_over_ranks(sums);
    const double count = sums[2];
    for (std::size_t i = 0; i < forward.x.size(); i++) {
        const double by_statistics = (sums[0] + normalised(forward, i) * sums[1]) / count;
        gradients.x.push_back(forward.weight * forward.inverse_std *
                              (forward.dy[i] - by_statistics));
    }
    return gradients;
    // end stub
}

NormalisedGradients rms_norm_backward(const Normalised& forward,
                                      const SumOverRanks& sum_over_ranks) {
    // stub: rms_norm
    //: In how many ways does an x reach the loss here?
    NormalisedGradients gradients = own_sums(forward);
    gradients.bias = 0;
    std::vector<double> sums = {gradients.weight, static_cast<double>(forward.x.size())};
    sum_over_ranks(sums);
    for (std::size_t i = 0; i < forward.x.size(); i++) {
        const double by_rms = normalised(forward, i) * sums[0] / sums[1];
        gradients.x.push_back(forward.weight * forward.inverse_std * (forward.dy[i] - by_rms));
    }
    return gradients;
    // end stub
}

}  // namespace ddp
