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
    std::vector<Samples> pieces;
    for (int done = 0; done < all.count; done += size)
        pieces.push_back({all.first + done, std::min(size, all.count - done)});
    return pieces;
}

std::vector<MicroBatch> micro_batches(Samples batch, int size) {
    std::vector<MicroBatch> result;
    for (const Samples& piece : split(batch, size))
        result.push_back(
            {piece, static_cast<float>(piece.count) / static_cast<float>(batch.count)});
    return result;
}

double accumulate(Tape& tape, const std::vector<MicroBatch>& batch, const MeanLoss& loss_of) {
    double batch_loss = 0;
    for (const MicroBatch& micro : batch) {
        tape.clear();  // the activations of the one before make room
        const Variable loss = loss_of(tape, micro.samples);
        tape.backward(loss, {}, micro.scale);
        batch_loss += micro.scale * loss.value().to_host()[0];
    }
    tape.clear();
    return batch_loss;
}

}  // namespace ddp
