#include "06_messages/stage.hpp"

#include <stdexcept>

#include "03_network/cross_entropy.hpp"

namespace ddp {

double predicted_idle(int stages, int micro_batches) {
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

double Stage::accumulate(const Tensor& inputs, const Labels& labels, int micro_batch) {
    for (const MicroBatch& part : micro_batches({0, inputs.dim(0)}, micro_batch)) {
        in_flight_.push_back(std::make_unique<InFlightMicroBatch>(device_));
        in_flight_.back()->part = part;
        in_flight_.back()->number = std::to_string(in_flight_.size());
        forward(*in_flight_.back(), inputs, labels);
    }
    for (const auto& in_flight : in_flight_)
        backward(*in_flight);
    peers_.synchronize(device_.stream());
    peers_.synchronize(sending_);
    double loss = 0;
    if (is_last())
        for (const auto& in_flight : in_flight_)
            loss += in_flight->part.scale * in_flight->end.value().to_host()[0];
    in_flight_.clear();
    return loss;
}

// ---- There

void Stage::forward(InFlightMicroBatch& in_flight, const Tensor& inputs, const Labels& labels) {
    const auto [first, count] = in_flight.part.samples;
    const auto begin = static_cast<std::size_t>(first);
    const Variable input =
        is_first() ? in_flight.tape.constant(inputs.view(
                         begin * static_cast<std::size_t>(input_width_), {count, input_width_}))
                   : receive_input(in_flight);
    track_.begin();
    const Variable output = layers_.forward(input);
    if (is_last())
        in_flight.end = cross_entropy(output, labels.view(begin, {count}));
    track_.mark("forward " + in_flight.number);
    if (!is_last())
        in_flight.end = hand_on(in_flight, output);
}

// A leaf of the tape, as a parameter is: the stage before wants its gradient.
Variable Stage::receive_input(InFlightMicroBatch& in_flight) {
    const Shape shape{in_flight.part.samples.count, input_width_};
    const Tensor value(device_, shape);
    peers_.receive(value.data(), value.size(), rank_ - 1, device_.stream(), "activations");
    in_flight.input_gradient = peers_.allocate<float>(value.size());
    in_flight.input = std::make_shared<Parameter>("input", value);
    in_flight.input->place_gradient(Tensor(device_, shape, in_flight.input_gradient.share()));
    return in_flight.tape.parameter(in_flight.input);
}

// An operation of the tape whose derivative comes from another rank.
Variable Stage::hand_on(InFlightMicroBatch& in_flight, Variable output) {
    const Tensor value = output.value();
    in_flight.output = peers_.allocate<float>(value.size());
    DDP_CHECK(cudaMemcpyAsync(in_flight.output.data(), value.data(), value.bytes(),
                              cudaMemcpyDeviceToDevice, device_.stream()));
    send(in_flight.output, rank_ + 1, "activations");
    const auto receive_gradient = [this](const Tensor&, Tape::InputGradients& inputs) {
        const Tensor gradient = inputs.target(0).tensor;
        peers_.receive(gradient.data(), gradient.size(), rank_ + 1, device_.stream(), "gradients");
        track_.begin();
    };
    return in_flight.tape.record("hand on", Tensor(device_, {1}), {output}, receive_gradient);
}

// ---- And back

void Stage::backward(InFlightMicroBatch& in_flight) {
    if (is_last())
        track_.begin();
    const auto send_gradient = [&](Parameter& parameter) {
        if (&parameter == in_flight.input.get())
            send(in_flight.input_gradient, rank_ - 1, "gradients");
    };
    // The others' gradients have the scale of the last one's in them.
    in_flight.tape.backward(in_flight.end, send_gradient, is_last() ? in_flight.part.scale : 1.0f);
    track_.mark("backward " + in_flight.number);
}

void Stage::send(const ArenaBuffer<float>& data, int to, const std::string& name) {
    computed_.record(device_.stream());
    sending_.wait(computed_);
    peers_.send(data.data(), data.size(), to, sending_, name);
}

}  // namespace ddp
