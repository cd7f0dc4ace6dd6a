// The exercise last_group: groups that are not complete. Read
// exercises/04_gradient_accumulation/README.md first.
#include "exercises/04_gradient_accumulation/last_group.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace ddp {

int largest_micro_batch(const NetworkSizes& sizes, std::size_t budget) {
    // Which memory of a step does not grow with the micro-batch? How much does a sample add?
    throw NotImplemented("largest");
}

int train_epoch(Device& device, Optimizer& optimizer, const MeanLoss& loss_of,
                const std::function<std::optional<Samples>()>& next, int group) {
    // Samples are two numbers, so keeping several of them takes hardly any memory.
    throw NotImplemented("unknown_end");
}

}  // namespace ddp
