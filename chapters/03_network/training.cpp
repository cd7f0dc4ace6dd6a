// A training step, as the host enqueues it and as the device later works through it:
//
//     loading | forward, layer by layer | loss | backward, layer by layer | optimizer | metrics
//     ▲       ▲                         ▲      ▲                          ▲           ▲        ▲
//     begin   a mark at the end of each part: an event in the stream                         end
//
// The host waits for none of these events: it reads those of step k - 1 when it has enqueued step
// k. It looks at the loss once in 100 steps.
#include "03_network/training.hpp"

#include <algorithm>
#include <stdexcept>

#include "03_network/cross_entropy.hpp"
#include "common/report/progress.hpp"

namespace ddp {

// ---- StepTimes

// Event 0 is the beginning of the step, event i + 1 the end of its part i.
void StepTimes::begin() {
    running_.parts.clear();
    if (running_.events.empty())
        running_.events.emplace_back();
    running_.events[0].record(device_.stream());
}

// Events are made in the first steps and then used again: creating one costs time.
void StepTimes::mark(const std::string& name) {
    running_.parts.push_back(part_of(name));
    if (running_.events.size() <= running_.parts.size())
        running_.events.emplace_back();
    running_.events[running_.parts.size()].record(device_.stream());
}

void StepTimes::end() {
    // Keep this step for later, and read the step before it, which is done or nearly so.
    std::swap(running_, previous_);
    add_up(running_);
    running_.parts.clear();
    steps_++;
}

// Nothing follows the last step of an epoch, so it is read here.
void StepTimes::finish() {
    add_up(previous_);
    previous_.parts.clear();
}

// Adds a finished step's times to the sums. Its parts may differ from those of the step before:
// each is found by its name.
void StepTimes::add_up(Step& step) {
    if (step.parts.empty())
        return;
    step.events[step.parts.size()].synchronize();  // when the last event is done, all are
    for (std::size_t i = 0; i < step.parts.size(); i++)
        parts_[step.parts[i]].seconds += step.events[i + 1].seconds_since(step.events[i]);
}

// Returns the index of the part `name`, which is appended at its first use.
std::size_t StepTimes::part_of(const std::string& name) {
    const auto known = std::find_if(parts_.begin(), parts_.end(),
                                    [&](const Part& part) { return part.name == name; });
    if (known != parts_.end())
        return static_cast<std::size_t>(known - parts_.begin());
    parts_.push_back({name});
    return parts_.size() - 1;
}

// The parts leave no gaps, so their sum is the time of all steps.
double StepTimes::total() const {
    double sum = 0;
    for (const Part& part : parts_)
        sum += part.seconds;
    return sum;
}

// ---- Trainer

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
    optimizer_.step_and_zero_gradients();
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
    Tape tape(device);
    model.set_training(false);
    // Forward only. The tape is cleared after each batch, since nothing will walk it backwards.
    while (const std::optional<Batch> batch = loader.next()) {
        const Variable logits = model.forward(tape.constant(batch->images));
        metrics.add(cross_entropy(logits, batch->labels).value(), logits.value(), batch->labels);
        tape.clear();
    }
    return metrics.read();
}

}  // namespace ddp
