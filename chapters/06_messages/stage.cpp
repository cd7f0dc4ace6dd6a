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
      lane_("compute", device.stream()) {
    if (rank_ >= stages)
        throw std::invalid_argument("rank " + std::to_string(rank_) + " has none of " +
                                    std::to_string(stages) + " stages");
}

double Stage::accumulate(const Tensor& inputs, const Labels& labels, int micro_batch) {
    for (const MicroBatch& part : micro_batches({0, inputs.dim(0)}, micro_batch)) {
        flights_.push_back(std::make_unique<Flight>(device_));
        flights_.back()->part = part;
        flights_.back()->number = std::to_string(flights_.size());
        forward(*flights_.back(), inputs, labels);
    }
    for (const auto& flight : flights_)
        backward(*flight);
    peers_.synchronize(device_.stream());
    peers_.synchronize(sending_);
    double loss = 0;
    if (is_last())
        for (const auto& flight : flights_)
            loss += flight->part.scale * flight->end.value().to_host()[0];
    flights_.clear();
    return loss;
}

// ---- There

void Stage::forward(Flight& flight, const Tensor& inputs, const Labels& labels) {
    const auto [first, count] = flight.part.samples;
    const auto begin = static_cast<std::size_t>(first);
    const Variable input =
        is_first() ? flight.tape.constant(inputs.view(
                         begin * static_cast<std::size_t>(input_width_), {count, input_width_}))
                   : receive_input(flight);
    lane_.begin();
    const Variable output = layers_.forward(input);
    if (is_last())
        flight.end = cross_entropy(output, labels.view(begin, {count}));
    lane_.mark("forward " + flight.number);
    if (!is_last())
        flight.end = hand_on(flight, output);
}

// A leaf of the tape, as a parameter is: the stage before wants its gradient.
Variable Stage::receive_input(Flight& flight) {
    const Shape shape{flight.part.samples.count, input_width_};
    const Tensor value(device_, shape);
    peers_.receive(value.data(), value.size(), rank_ - 1, device_.stream(), "activations");
    flight.input_gradient = peers_.allocate<float>(value.size());
    flight.input = std::make_shared<Parameter>("input", value);
    flight.input->place_gradient(Tensor(device_, shape, flight.input_gradient.share()));
    return flight.tape.parameter(flight.input);
}

// An operation of the tape whose derivative comes from another rank.
Variable Stage::hand_on(Flight& flight, Variable output) {
    const Tensor value = output.value();
    flight.output = peers_.allocate<float>(value.size());
    DDP_CHECK(cudaMemcpyAsync(flight.output.data(), value.data(), value.bytes(),
                              cudaMemcpyDeviceToDevice, device_.stream()));
    send(flight.output, rank_ + 1, "activations");
    const auto receive_gradient = [this](const Tensor&, Tape::InputGradients& inputs) {
        const Tensor gradient = inputs.target(0).tensor;
        peers_.receive(gradient.data(), gradient.size(), rank_ + 1, device_.stream(), "gradients");
        lane_.begin();
    };
    return flight.tape.record("hand on", Tensor(device_, {1}), {output}, receive_gradient);
}

// ---- And back

void Stage::backward(Flight& flight) {
    if (is_last())
        lane_.begin();
    const auto send_gradient = [&](Parameter& parameter) {
        if (&parameter == flight.input.get())
            send(flight.input_gradient, rank_ - 1, "gradients");
    };
    // The others' gradients have the scale of the last one's in them.
    flight.tape.backward(flight.end, send_gradient, is_last() ? flight.part.scale : 1.0f);
    lane_.mark("backward " + flight.number);
}

void Stage::send(const PoolBuffer<float>& data, int to, const std::string& name) {
    computed_.record(device_.stream());
    sending_.wait(computed_);
    peers_.send(data.data(), data.size(), to, sending_, name);
}

}  // namespace ddp
