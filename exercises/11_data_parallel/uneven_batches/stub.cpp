// The exercise uneven_batches: every sample counts the same. Read
// exercises/11_data_parallel/README.md first.
#include "exercises/11_data_parallel/uneven_batches.hpp"

namespace ddp {
namespace {

// Helpers of several tasks go here.

}  // namespace

double weight_of_sample(const std::vector<int>& samples, int rank) {
    // Each rank averages its own samples. And what happens to the results of all ranks then?
    throw NotImplemented("sample_weight");
}

int uneven_step(const Replica& replica, const std::optional<Batch>& batch) {
    // replica.ddp.average_gradients() will divide by the number of ranks. What must the gradients
    // be before that? (tape.backward() can multiply them by a number.)
    throw NotImplemented("uneven_step");
}

int uneven_epoch(const Replica& replica, const std::function<std::optional<Batch>()>& next,
                 Sgd& optimizer) {
    // When may a rank stop? Not when its own data has ended.
    throw NotImplemented("epoch");
}

}  // namespace ddp
