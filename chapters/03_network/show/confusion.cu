#include "03_network/show/confusion.hpp"

#include "03_network/metrics.hpp"

namespace ddp {
namespace {

// Counts each pair of label and prediction. The counts are whole numbers, so their sums do not
// depend on the order in which the threads add.
__global__ void count_pairs(int batch, int classes, const int* labels, const int* predictions,
                            int* counts) {
    for (std::size_t i : grid_range(batch))
        atomicAdd(&counts[labels[i] * classes + predictions[i]], 1);
}

}  // namespace

int Confusion::samples(int actual) const {
    int sum = 0;
    for (int predicted = 0; predicted < classes; predicted++)
        sum += count(actual, predicted);
    return sum;
}

Confusion::Pair Confusion::max_confused() const {
    Pair most{0, 1, 0};
    for (int a = 0; a < classes; a++)
        for (int b = a + 1; b < classes; b++)
            if (const int mistakes = count(a, b) + count(b, a); mistakes > most.mistakes)
                most = {a, b, mistakes};
    return most;
}

Confusion confusion_of(Device& device, Sequential& model, Loader& loader, int classes) {
    Buffer<int> counts(std::vector<int>(static_cast<std::size_t>(classes * classes), 0));
    Tape tape(device);
    model.set_training(false);
    while (const std::optional<Batch> batch = loader.next()) {
        const Labels predictions = predict(model.forward(tape.constant(batch->images)).value());
        launch(device.stream(), grid_for(predictions.size()), count_pairs, predictions.dim(0),
               classes, batch->labels.data(), predictions.data(), counts.data());
        tape.clear();
    }
    device.stream().synchronize();
    return {classes, counts.to_host_now()};
}

}  // namespace ddp
