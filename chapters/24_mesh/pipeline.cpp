// One micro-batch between two stages. The tape is cut in two, and its ends are messages:
//
//                 stage 0                                   stage 1
//     forward     tokens ─▶ layers ─▶ send ══ activations ═▶ receive ─▶ layers ─▶ loss
//     backward              layers ◀─ send ◀═ gradients ════ receive ◀─ layers ◀─ 1
//
// Everything is only enqueued. A receive stands in the stream that computes, which waits there; a
// send stands in a stream of its own, and computing goes on.
#include "24_mesh/pipeline.hpp"

#include <algorithm>

namespace ddp {

Pipeline::Pipeline(Communicator& stages, Device& device, Shape between,
                   std::shared_ptr<Parameter> learned, Forward forward)
    : stages_(stages),
      device_(device),
      between_(std::move(between)),
      learned_(std::move(learned)),
      forward_(std::move(forward)) {}

std::size_t Pipeline::arena_bytes(const Shape& between, int micro_batches) {
    const std::size_t bytes = element_count(between) * sizeof(float) + SharedArena::unit;
    return 2 * static_cast<std::size_t>(micro_batches) * bytes + SharedArena::unit;
}

double Pipeline::step(Schedule schedule, int micro_batches, const LastBackward& last_backward) {
    in_flight_.resize(static_cast<std::size_t>(micro_batches));
    // The mean over the micro-batches, which are equally large.
    const float scale = 1.0f / static_cast<float>(micro_batches);
    std::size_t actions = 0;
    for (const Action& action :
         actions_of(schedule, stages_.world_size(), stages_.index(), micro_batches)) {
        // A GPU's queue takes about a thousand operations (06_messages): the host is at most two
        // actions ahead.
        Event& done = done_[actions++ % 2];
        done.synchronize();
        if (action.is_forward)
            forward(action.micro_batch);
        else
            backward(action.micro_batch, scale,
                     action.micro_batch == micro_batches - 1 ? last_backward : LastBackward());
        done.record(device_.stream());
    }
    // So far everything was only enqueued.
    for (Stream* stream : {&device_.stream(), &to_next_, &to_previous_})
        stages_.synchronize(*stream);
    in_flight_.clear();
    // Only the last stage has losses.
    double loss = 0;
    for (const Tensor& each : losses_)
        loss += scale * each.to_host()[0];
    losses_.clear();
    return loss;
}

// ---- Forward

void Pipeline::forward(int micro_batch) {
    auto& flight = in_flight_[static_cast<std::size_t>(micro_batch)];
    flight = std::make_unique<InFlight>(device_);
    max_in_flight_ = std::max(max_in_flight_, ++now_in_flight_);
    // The first stage has the tokens; the others wait for what the one before makes of them.
    const auto input = is_first() ? std::nullopt : std::optional(receive_input(*flight));
    const Variable output = forward_(flight->tape, input, micro_batch);
    flight->end = is_last() ? output : send_output(*flight, output);
}

// Receiving is an operation whose derivative is sent back. The tape skips gradients that no
// parameter needs, so one of this stage's parameters is named as the input.
Variable Pipeline::receive_input(InFlight& flight) {
    const Tensor value(device_, between_);
    stages_.receive(value.data(), value.size(), stages_.index() - 1, device_.stream(),
                    "pp: activations");
    return flight.tape.record("receive", value, {flight.tape.parameter(learned_)},
                              [this, &flight](const Tensor& gradient, Tape::InputGradients&) {
                                  send(flight.input_gradient, gradient, stages_.index() - 1,
                                       to_previous_, "pp: gradients");
                              });
}

// Sending is an operation whose derivative is received. Its result is a stand-in: backward begins
// there, and the gradient comes by message.
Variable Pipeline::send_output(InFlight& flight, Variable output) {
    send(flight.output, output.value(), stages_.index() + 1, to_next_, "pp: activations");
    return flight.tape.record("send", Tensor(device_, {1}), {output},
                              [this](const Tensor&, Tape::InputGradients& inputs) {
                                  const Tensor gradient = inputs.target(0).tensor;
                                  stages_.receive(gradient.data(), gradient.size(),
                                                  stages_.index() + 1, device_.stream(),
                                                  "pp: gradients");
                              });
}

// Sends a copy, which peers can read, once it is computed. A send is over when the neighbour
// receives it. What is sent back stays until the end of the step.
void Pipeline::send(ArenaBuffer<float>& data, const Tensor& from, int to, Stream& stream,
                    const std::string& name) {
    data = stages_.allocate<float>(from.size());
    DDP_CHECK(cudaMemcpyAsync(data.data(), from.data(), from.bytes(), cudaMemcpyDeviceToDevice,
                              device_.stream()));
    // The stream that sends begins when the copy is there.
    computed_.record(device_.stream());
    stream.wait(computed_);
    stages_.send(data.data(), data.size(), to, stream, name);
}

// ---- Backward

void Pipeline::backward(int micro_batch, float scale, const LastBackward& run) {
    InFlight& flight = *in_flight_[static_cast<std::size_t>(micro_batch)];
    // Only the last stage scales: what the others receive is scaled already.
    const float own_scale = is_last() ? scale : 1.0f;
    if (run)
        run(flight.end, own_scale);
    else
        flight.tape.backward(flight.end, {}, own_scale);
    if (is_last())
        losses_.push_back(flight.end.value());
    // The activations are free. So is what was sent: its gradient came back.
    flight.tape.clear();
    flight.output = {};
    now_in_flight_--;
}

}  // namespace ddp
