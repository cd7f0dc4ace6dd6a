// The exercise exact_metric: an exact number from padded samples. Read
// exercises/12_sampler/README.md first.
#include "exercises/12_sampler/exact_metric.hpp"

namespace ddp {

std::vector<double> weights_of_padded(int samples, int rank, int world_size) {
    // stub: weights
    //: Where in the padded order of all ranks is this rank's index number i?
    std::vector<double> weights;
    const DistributedSampler sampler(samples, rank, world_size, {.shuffle = false});
    for (int i = 0; i < sampler.samples_per_rank(); i++)
        weights.push_back(rank + i * world_size < samples ? 1 : 0);
    return weights;
    // end stub
}

double balanced_accuracy(const Answers& mine, int classes, const SumOverRanks& sum_over_ranks) {
    // stub: balanced_accuracy
    //: Which numbers can be summed over the ranks, and which cannot?
    const auto n = static_cast<std::size_t>(classes);
    std::vector<double> sums(2 * n);  // correct answers by class, then all answers by class
    for (std::size_t i = 0; i < mine.label.size(); i++) {
        const auto label = static_cast<std::size_t>(mine.label[i]);
        if (mine.predicted[i] == mine.label[i])
            sums[label] += mine.weights[i];
        sums[n + label] += mine.weights[i];
    }
    sum_over_ranks(sums);
    double recalls = 0;
    int occur = 0;
    for (std::size_t c = 0; c < n; c++)
        if (sums[n + c] > 0) {
            recalls += sums[c] / sums[n + c];
            occur++;
        }
    return occur > 0 ? recalls / occur : 0;
    // end stub
}

double worst_padding(int samples, int world_size) {
    // stub: worst_padding
    //: Which samples count twice? What if exactly those are predicted correctly?
    const int rest = samples % world_size;
    const double padded = rest == 0 ? 0 : world_size - rest;
    return padded * (samples - padded) / (samples * (samples + padded));
    // end stub
}

}  // namespace ddp
