// A batch of 8 in micro-batches of 2: only one is on the tape at a time, and the gradient grows.
//
//     forward 2  backward 2   forward 2  backward 2   forward 2  backward 2   forward 2  backward 2
//     ██         ██           ██         ██           ██         ██           ██         ██
//                gradient 1/4            2/4                     3/4                     4/4
//
// (██: activations in use.) Step and zero follow once per batch.
#include "04_gradient_accumulation/accumulate.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace ddp {

std::vector<Samples> split(Samples samples, int size) {
    if (samples.count < 1)
        throw std::invalid_argument("a batch of " + std::to_string(samples.count) +
                                    " samples has no mean loss: give it one or more");
    if (size < 1 || size > samples.count)
        throw std::invalid_argument(
            "a micro-batch of " + std::to_string(size) + " samples makes no sense in a batch of " +
            std::to_string(samples.count) + ": take 1 to " + std::to_string(samples.count));
    std::vector<Samples> ranges;
    // The last range has the rest.
    for (int done = 0; done < samples.count; done += size)
        ranges.push_back({samples.first + done, std::min(size, samples.count - done)});
    return ranges;
}

std::vector<MicroBatch> micro_batches(Samples batch, int size) {
    std::vector<MicroBatch> result;
    // The weight of each mean loss is its fraction of the batch's samples.
    for (const Samples& samples : split(batch, size))
        result.push_back(
            {samples, static_cast<float>(samples.count) / static_cast<float>(batch.count)});
    return result;
}

double accumulate(Tape& tape, const std::vector<MicroBatch>& batch, const MeanLoss& loss_of) {
    double batch_loss = 0;
    for (const MicroBatch& micro : batch) {
        // Drop the activations of the previous micro-batch, then forward.
        tape.clear();
        const Variable loss = loss_of(tape, micro.samples);
        // Backward adds to the gradients of the earlier micro-batches.
        tape.backward(loss, {}, micro.scale);
        batch_loss += micro.scale * loss.value().to_host()[0];
    }
    tape.clear();
    return batch_loss;
}

double learn_batch(Tape& tape, Optimizer& optimizer, const std::vector<MicroBatch>& batch,
                   const MeanLoss& loss_of) {
    const double loss = accumulate(tape, batch, loss_of);
    optimizer.step();
    optimizer.zero_gradients();
    return loss;
}

}  // namespace ddp
