// Two stages on two ranks. 1 to 4: forward of a micro-batch; a to d: its backward; a dot: idle.
//
//     the batch at once                     in four micro-batches
//
//     rank 0   1111............aaaaaaaa     rank 0   1234...aabbccdd
//     rank 1   ....1111aaaaaaaa........     rank 1   .1234aabbccdd..
//
// First all micro-batches go forward, then all go backward: GPipe's schedule (Huang and others,
// 2019). One micro-batch on its way, by what its tape records on each rank:
//
//     rank 0   inputs ─▶ layers ─▶ send ═══▶ rank 1   receive ─▶ layers ─▶ cross-entropy
//                            receive ◀═══                 send ◀──── backward
//
// The tape is cut in two between the stages. On rank 0 it ends with an operation whose derivative
// is received; on rank 1 it begins with a leaf whose gradient is sent.
#include "06_messages/stage.hpp"

#include <stdexcept>

#include "03_network/cross_entropy.hpp"

namespace ddp {

double predicted_idle(int stages, int micro_batches) {
    // Forward takes M turns on a rank, and S - 1 more until the last stage is through. So does
    // backward.
    return (stages - 1.0) / (micro_batches + stages - 1.0);
}

Stage::Stage(Peers& peers, Device& device, Sequential& layers, int stages, int input_width)
    : peers_(peers),
      device_(device),
      layers_(layers),
      rank_(peers.rank().rank()),
      stages_(stages),
      input_width_(input_width),
      track_("compute", device.stream()) {
    if (rank_ >= stages)
        throw std::invalid_argument("rank " + std::to_string(rank_) + " has none of " +
                                    std::to_string(stages) + " stages");
}

void Stage::rehearse(int samples) {
    const auto count = static_cast<std::size_t>(samples);
    const Shape shape{samples, input_width_};
    const Tensor zeros(device_, shape,
                       std::vector<float>(count * static_cast<std::size_t>(input_width_)));
    Tape tape(device_);
    const Variable output =
        layers_.forward(tape.parameter(std::make_shared<Parameter>("input", zeros)));
    tape.backward(cross_entropy(output, Labels(device_, {samples}, std::vector<int>(count))));
    for (const auto& parameter : layers_.parameters())
        parameter->clear_gradient();
    device_.stream().synchronize();
}

double Stage::accumulate(const Tensor& inputs, const Labels& labels, int micro_batch_size) {
    // All forward: every micro-batch keeps its tape, and so its activations.
    for (const MicroBatch& each : micro_batches({0, inputs.dim(0)}, micro_batch_size)) {
        in_flight_.push_back(
            std::make_unique<InFlightMicroBatch>(device_, each, in_flight_.size() + 1));
        forward(*in_flight_.back(), inputs, labels);
    }
    // All backward, in the same order: gradients add up as on one device.
    for (const auto& micro_batch : in_flight_)
        backward(*micro_batch);
    // So far everything was only enqueued.
    peers_.synchronize(device_.stream());
    peers_.synchronize(sending_);
    double loss = 0;
    if (is_last())
        for (const auto& micro_batch : in_flight_)
            loss += micro_batch->scale * micro_batch->end.value().to_host()[0];
    in_flight_.clear();
    return loss;
}

// ---- Forward

void Stage::forward(InFlightMicroBatch& micro_batch, const Tensor& inputs, const Labels& labels) {
    const auto [first, count] = micro_batch.samples;
    const auto begin = static_cast<std::size_t>(first);
    // The first stage has the samples; the others receive what their layers need.
    const Variable input =
        is_first() ? micro_batch.tape.constant(inputs.view(
                         begin * static_cast<std::size_t>(input_width_), {count, input_width_}))
                   : receive_input(micro_batch);
    // Only computing counts as busy: waiting for a neighbour does not.
    track_.begin();
    const Variable output = layers_.forward(input);
    if (is_last())
        micro_batch.end = cross_entropy(output, labels.view(begin, {count}));
    track_.mark("forward " + micro_batch.number);
    if (!is_last())
        micro_batch.end = send_output(micro_batch, output);
}

// Receives the activations of the stage before, and puts them on the tape as a parameter, so that
// backward computes their gradient: in the arena, from where send() sends it.
Variable Stage::receive_input(InFlightMicroBatch& micro_batch) {
    const Shape shape{micro_batch.samples.count, input_width_};
    const Tensor value(device_, shape);
    peers_.receive(value.data(), value.size(), rank_ - 1, device_.stream(), "activations");
    micro_batch.input_gradient = peers_.allocate<float>(value.size());
    micro_batch.input = std::make_shared<Parameter>("input", value);
    micro_batch.input->place_gradient(Tensor(device_, shape, micro_batch.input_gradient.share()));
    return micro_batch.tape.parameter(micro_batch.input);
}

// Sends the activations to the next stage, and records that on the tape as an operation whose
// derivative is received from there.
Variable Stage::send_output(InFlightMicroBatch& micro_batch, Variable output) {
    const Tensor value = output.value();
    micro_batch.output = peers_.allocate<float>(value.size());
    DDP_CHECK(cudaMemcpyAsync(micro_batch.output.data(), value.data(), value.bytes(),
                              cudaMemcpyDeviceToDevice, device_.stream()));
    send(micro_batch.output, rank_ + 1, "activations");
    const auto receive_gradient = [this](const Tensor&, Tape::InputGradients& inputs) {
        const Tensor gradient = inputs.target(0).tensor;
        peers_.receive(gradient.data(), gradient.size(), rank_ + 1, device_.stream(), "gradients");
        track_.begin();
    };
    return micro_batch.tape.record("send", Tensor(device_, {1}), {output}, receive_gradient);
}

// ---- Backward

void Stage::backward(InFlightMicroBatch& micro_batch) {
    if (is_last())
        track_.begin();
    // Called as soon as backward has computed a leaf's gradient: that of the input goes back.
    const auto send_gradient = [&](Parameter& parameter) {
        if (&parameter == micro_batch.input.get())
            send(micro_batch.input_gradient, rank_ - 1, "gradients");
    };
    // Only the last stage scales: the gradients that the others receive are scaled already.
    micro_batch.tape.backward(micro_batch.end, send_gradient, is_last() ? micro_batch.scale : 1.0f);
    track_.mark("backward " + micro_batch.number);
}

// Sends on a stream of its own once what was enqueued so far is computed: a send ends when the
// neighbour receives, and the next micro-batch need not wait for that.
void Stage::send(const ArenaBuffer<float>& data, int to, const std::string& name) {
    computed_.record(device_.stream());
    sending_.wait(computed_);
    peers_.send(data.data(), data.size(), to, sending_, name);
}

}  // namespace ddp
