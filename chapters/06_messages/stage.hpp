#pragma once
// Model parallelism: a network whose layers are spread over ranks, its stages. Rank r has stage r:
// it receives the activations of stage r - 1 and sends its own to stage r + 1. In backward,
// gradients travel the other way. stage.cpp begins with a picture.
#include <memory>
#include <string>
#include <vector>

#include "03_network/layers/sequential.hpp"
#include "04_gradient_accumulation/accumulate.hpp"
#include "06_messages/peers.hpp"
#include "06_messages/support/timeline.hpp"

namespace ddp {

// Returns the fraction of a step for which each rank is idle, if all stages take equally long:
// (S - 1) / (M + S - 1) for S stages and M micro-batches.
double predicted_idle(int stages, int micro_batches);

class Stage {
  public:
    // The stage of rank peers.rank().rank(), one of `stages`. Its `layers` take [samples,
    // input_width], and all stages but the last return this shape as well. All arguments must
    // outlive this object. Throws std::invalid_argument if this rank has no stage.
    Stage(Peers& peers, Device& device, Sequential& layers, int stages, int input_width);

    // Computes forward and backward of `samples` zeros, and leaves no gradient. Before the first
    // batch each stage rehearses each size of its micro-batches, and all ranks meet at a barrier:
    // a GPU loads kernels by the size (06_messages/support/kernel_loading.hpp).
    void rehearse(int samples);

    // Adds the gradient of the batch's mean loss to this stage's parameters: the same bits that
    // accumulate of 04_gradient_accumulation gives for the whole network with micro-batches of
    // `micro_batch_size` samples. The ranks of all stages call it. The first stage reads `inputs`
    // [samples, input_width]; the last one reads `labels` [samples], and returns the loss. The
    // others return 0. Waits for the device.
    double accumulate(const Tensor& inputs, const Labels& labels, int micro_batch_size);

    // Returns when this rank has computed since the last call: "forward 1", "backward 1", ...
    std::vector<StreamSpan> spans() { return track_.read(rank_); }

  private:
    // A micro-batch between its forward and its backward.
    struct InFlightMicroBatch {
        InFlightMicroBatch(Device& device, const MicroBatch& of_batch, std::size_t number_from_1)
            : tape(device),
              samples(of_batch.samples),
              scale(of_batch.scale),
              number(std::to_string(number_from_1)) {}

        Tape tape;
        const Samples samples;
        const float scale;  // of its mean loss, in the loss of the whole batch
        const std::string number;
        std::shared_ptr<Parameter> input;   // received from the stage before
        ArenaBuffer<float> input_gradient;  // sent back to it
        ArenaBuffer<float> output;          // sent to the next stage
        Variable end;                       // where backward begins
    };

    bool is_first() const { return rank_ == 0; }
    bool is_last() const { return rank_ == stages_ - 1; }
    void forward(InFlightMicroBatch& micro_batch, const Tensor& inputs, const Labels& labels);
    void backward(InFlightMicroBatch& micro_batch);
    Variable receive_input(InFlightMicroBatch& micro_batch);
    Variable send_output(InFlightMicroBatch& micro_batch, Variable output);
    void send(const ArenaBuffer<float>& data, int to, const std::string& name);

    Peers& peers_;
    Device& device_;
    Sequential& layers_;
    const int rank_, stages_, input_width_;
    StreamTrack track_;
    Stream sending_;  // a stream of its own, so that computing goes on until a neighbour receives
    Event computed_;
    std::vector<std::unique_ptr<InFlightMicroBatch>> in_flight_;
};

}  // namespace ddp
