// The exercise exact_metric: an exact number from padded samples. Read
// exercises/12_sampler/README.md first.
#include "exercises/12_sampler/exact_metric.hpp"

namespace ddp {

std::vector<double> weights_of_padded(int samples, int rank, int world_size) {
    // Where in the padded order of all ranks is this rank's index number i?
    throw NotImplemented("weights");
}

double balanced_accuracy(const Answers& mine, int classes, const SumOverRanks& sum_over_ranks) {
    // Which numbers can be summed over the ranks, and which cannot?
    throw NotImplemented("balanced_accuracy");
}

double worst_padding(int samples, int world_size) {
    // Which samples count twice? What if exactly those are predicted correctly?
    throw NotImplemented("worst_padding");
}

}  // namespace ddp
