// The exercise last_group: what does not divide. Read exercises/04_gradient_accumulation/README.md
// first.
#include "exercises/04_gradient_accumulation/last_group.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace ddp {

int largest_micro_batch(const NetworkSizes& sizes, std::size_t budget) {
    // Which memory of a step does not grow with the micro-batch? How much does each sample add?
    throw NotImplemented("largest");
}

int train_epoch(Device& device, Optimizer& optimizer, const MeanLoss& loss_of,
                const std::function<std::optional<Samples>()>& next, int group) {
    // Samples are two numbers: to have several of them at hand takes no memory.
    throw NotImplemented("unknown_end");
}

}  // namespace ddp
