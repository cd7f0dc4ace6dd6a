#pragma once
// A stage of a pipeline: some of the model's layers, whose activations go to the next rank, and
// whose input's gradients go back to the one before (06_messages has the simplest of them).
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "01_sgd/tape.hpp"
#include "09_all_reduce/communicator.hpp"
#include "24_mesh/schedule.hpp"

namespace ddp {

class Pipeline {
  public:
    // Runs the stage's layers for a micro-batch: `input` is what the stage before has sent, nothing
    // on the first. Returns what the next stage gets, or on the last one the mean loss.
    using Forward =
        std::function<Variable(Tape& tape, std::optional<Variable> input, int micro_batch)>;
    // Runs the last backward of a step, which may do more than Tape::backward.
    using LastBackward = std::function<void(Variable end, float scale)>;

    // Makes this rank's stage; `stages` has a rank for each, in their order. Every stage but the
    // last returns a tensor of shape `between`. `learned` is any parameter that the stage uses. All
    // arguments must outlive this object.
    Pipeline(Communicator& stages, Device& device, Shape between,
             std::shared_ptr<Parameter> learned, Forward forward);
    // Returns the arena size, in bytes, that the communicator needs.
    static std::size_t arena_bytes(const Shape& between, int micro_batches);

    // Adds the gradient of the micro-batches' mean loss to this stage's parameters. Returns that
    // loss on the last stage, 0 on the others. Waits for the device.
    double step(Schedule schedule, int micro_batches, const LastBackward& last_backward);

    // Returns how many micro-batches had activations here at the same time, at most.
    int max_in_flight() const { return max_in_flight_; }

  private:
    struct InFlight {
        explicit InFlight(Device& device) : tape(device) {}
        Tape tape;
        ArenaBuffer<float> output, input_gradient;  // sent to the neighbours
        Variable end;                               // where backward begins
    };

    bool is_first() const { return stages_.index() == 0; }
    bool is_last() const { return stages_.index() == stages_.world_size() - 1; }
    void forward(int micro_batch);
    void backward(int micro_batch, float scale, const LastBackward& run);
    Variable receive_input(InFlight& flight);
    Variable send_output(InFlight& flight, Variable output);
    void send(ArenaBuffer<float>& data, const Tensor& from, int to, Stream& stream,
              const std::string& name);

    Communicator& stages_;
    Device& device_;
    const Shape between_;
    const std::shared_ptr<Parameter> learned_;
    const Forward forward_;
    // A stream for each direction: neither waits until a neighbour takes what is in the other.
    Stream to_next_, to_previous_;
    Event computed_;
    std::array<Event, 2> done_;                         // the last actions
    std::vector<std::unique_ptr<InFlight>> in_flight_;  // by micro-batch
    int now_in_flight_ = 0, max_in_flight_ = 0;
    std::vector<Tensor> losses_;  // of the micro-batches, on the last stage
};

}  // namespace ddp
