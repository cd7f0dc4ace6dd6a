// A batch of 8 in micro-batches of 2: one of them is on the tape at a time, and the gradient grows.
//
//     forward 2  backward 2   forward 2  backward 2   forward 2  backward 2   forward 2  backward 2
//     ██         ██           ██         ██           ██         ██           ██         ██
//     gradient   1/4                     2/4                     3/4                     4/4
//
// Step and zero follow, once a batch: they are the caller's.
#include "04_gradient_accumulation/accumulate.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace ddp {

std::vector<Samples> split(Samples all, int size) {
    if (all.count < 1)
        throw std::invalid_argument("a batch of " + std::to_string(all.count) +
                                    " samples has no mean loss: give it one or more");
    if (size < 1 || size > all.count)
        throw std::invalid_argument(
            "a micro-batch of " + std::to_string(size) + " samples makes no sense in a batch of " +
            std::to_string(all.count) + ": take 1 to " + std::to_string(all.count));
    std::vector<Samples> all_samples;
    // The last one has what is left.
    for (int done = 0; done < all.count; done += size)
        all_samples.push_back({all.first + done, std::min(size, all.count - done)});
    return all_samples;
}

std::vector<MicroBatch> micro_batches(Samples batch, int size) {
    std::vector<MicroBatch> result;
    // Each mean loss counts for as much as it has of the batch's samples.
    for (const Samples& samples : split(batch, size))
        result.push_back(
            {samples, static_cast<float>(samples.count) / static_cast<float>(batch.count)});
    return result;
}

double accumulate(Tape& tape, const std::vector<MicroBatch>& batch, const MeanLoss& loss_of) {
    double batch_loss = 0;
    for (const MicroBatch& micro : batch) {
        tape.clear();  // drops the activations of the one before
        const Variable loss = loss_of(tape, micro.samples);
        // Adds to the gradients that earlier micro-batches have left.
        tape.backward(loss, {}, micro.scale);
        batch_loss += micro.scale * loss.value().to_host()[0];
    }
    tape.clear();
    return batch_loss;
}

}  // namespace ddp
