// A training step, as the host enqueues it and as the device later works through it:
//
//     loading | forward, layer by layer | loss | backward, layer by layer | optimizer | metrics
//     ▲       ▲                         ▲      ▲                          ▲           ▲        ▲
//     begin   a mark at the end of each part: an event in the stream                         end
//
// The host waits for none of these events: it reads those of step k - 1 when it has enqueued step
// k. It looks at the loss once in 100 steps.
#include "03_network/training.hpp"

#include <stdexcept>

#include "03_network/cross_entropy.hpp"
#include "common/report/progress.hpp"

namespace ddp {

Trainer::Trainer(Device& device, Sequential& model, Optimizer& optimizer, StepTimes& times)
    : device_(device), model_(model), optimizer_(optimizer), times_(times), tape_(device) {}

void Trainer::step(const Batch& batch, Metrics& metrics) {
    // Forward. The model calls back after each layer.
    model_.observe([&](const Module& layer) { times_.mark("forward " + layer.name()); });
    const Variable logits = model_.forward(tape_.constant(batch.images));
    model_.observe({});
    const Variable loss = cross_entropy(logits, batch.labels);
    times_.mark("forward loss");
    // Backward, from the loss to the first layer. The tape calls back as soon as a parameter's
    // gradient is final, so a part also contains the layers above it that have no parameters.
    tape_.backward(loss, [&](Parameter& parameter) {
        times_.mark("backward to " + parameter.name.substr(0, parameter.name.rfind('.')));
    });
    optimizer_.step();
    optimizer_.zero_gradients();
    times_.mark("optimizer");
    metrics.add(loss.value(), logits.value(), batch.labels);
    tape_.clear();
}

Metrics::Totals Trainer::epoch(Loader& loader, const std::string& name) {
    constexpr int steps_between_checks = 100;  // a check has to wait for the device
    Metrics metrics(device_);
    Progress progress(name, loader.batches());
    model_.set_training(true);
    // 1. Enqueue all steps. `metrics` adds up on the device, `times_` reads events of earlier
    // steps.
    for (int done = 1;; done++) {
        times_.begin();
        const std::optional<Batch> batch = loader.next();
        if (!batch)
            break;  // a begin() without marks and end() does not count
        times_.mark("loading");
        step(*batch, metrics);
        times_.mark("metrics");
        times_.end();
        progress.advance();
        // A run whose loss is a NaN should not train on for hours.
        if (done % steps_between_checks == 0)
            require_finite(metrics.read());
    }
    // 2. Wait for the device, once, and read what it has added up.
    times_.finish();
    const Metrics::Totals totals = metrics.read();
    require_finite(totals);
    steps_before_ += totals.steps;
    return totals;
}

// The totals know the epoch's first bad step; the run counts from its first epoch, and from 1.
void Trainer::require_finite(const Metrics::Totals& totals) const {
    if (totals.first_bad_step >= 0)
        throw std::runtime_error("the loss is no longer a number at step " +
                                 std::to_string(steps_before_ + totals.first_bad_step + 1) +
                                 ": the steps are too long; try a smaller --learning-rate");
}

Metrics::Totals evaluate(Device& device, Sequential& model, Loader& loader) {
    Metrics metrics(device);
    // Forward only: nothing will walk this tape backwards, so it records nothing.
    Tape tape(device, Recording::off);
    model.set_training(false);
    while (const std::optional<Batch> batch = loader.next()) {
        const Variable logits = model.forward(tape.constant(batch->images));
        metrics.add(cross_entropy(logits, batch->labels).value(), logits.value(), batch->labels);
    }
    return metrics.read();
}

}  // namespace ddp
