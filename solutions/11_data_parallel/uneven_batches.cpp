// The exercise uneven_batches: every sample counts the same. Read
// exercises/11_data_parallel/README.md first.
#include "exercises/11_data_parallel/uneven_batches.hpp"

namespace ddp {
namespace {

// stub
//: Helpers of several tasks go here.
// Returns the number of samples that all ranks have in this step.
int samples_of_all(Rank& rank, int mine) {
    int sum = 0;
    for (const int theirs : rank.all_gather(mine))
        sum += theirs;
    return sum;
}
// end stub

}  // namespace

double weight_of_sample(const std::vector<int>& samples, int rank) {
    // stub: sample_weight
    //: Each rank averages its own samples. And what happens to the results of all ranks then?
    return 1.0 / static_cast<double>(samples.size()) / samples[static_cast<std::size_t>(rank)];
    // end stub
}

int uneven_step(const Replica& replica, const std::optional<Batch>& batch) {
    // stub: uneven_step
    //: replica.ddp.average_gradients() will divide by the number of ranks. What must the gradients
    //: be before that? (tape.backward() can multiply them by a number.)
    const int mine = batch ? batch->labels.dim(0) : 0;
    const int all = samples_of_all(replica.rank, mine);
    if (all == 0)
        return 0;
    if (batch) {
        Tape tape(replica.device);
        const Variable loss =
            cross_entropy(replica.model.forward(tape.constant(batch->images)), batch->labels);
        const float scale = static_cast<float>(mine * replica.rank.world_size()) / all;
        tape.backward(loss, {}, scale);
    } else {
        for (const auto& parameter : replica.model.parameters())
            fill(parameter->gradient_for_writing(), 0);
    }
    replica.ddp.average_gradients();
    return all;
    // end stub
}

int uneven_epoch(const Replica& replica, const std::function<std::optional<Batch>()>& next,
                 Sgd& optimizer) {
    // stub: epoch
    //: When may a rank stop? Not when its own data has ended.
    int steps = 0;
    while (uneven_step(replica, next()) > 0) {
        optimizer.step();
        optimizer.zero_gradients();
        steps++;
    }
    return steps;
    // end stub
}

}  // namespace ddp
