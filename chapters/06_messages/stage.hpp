#pragma once
// Model parallelism: a network whose layers are spread over ranks. Rank r has stage r. It takes
// what stage r - 1 has made of the samples, and hands on what its own layers make of that; in
// backward gradients come the other way. A rank that waits for its neighbour is idle. For two
// stages, and a batch at once or in four micro-batches:
//
//     rank 0   1111............aaaaaaaa     rank 0   1234...aa.bb.cc.dd
//     rank 1   ....1111aaaaaaaa........     rank 1   .1234aabbccdd.....
//
// (1 to 4: forward, a to d: backward.) With M micro-batches and S stages whose parts all take
// equally long, a rank is busy for 2 M parts of 2 (M + S - 1), and idle for (S - 1) / (M + S - 1)
// of the time. All forward first and then all backward is GPipe's order (Huang and others, 2019).
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "03_network/layers/sequential.hpp"
#include "04_gradient_accumulation/accumulate.hpp"
#include "06_messages/peers.hpp"
#include "06_messages/support/timeline.hpp"

namespace ddp {

// The part of the time for which each rank is idle.
double predicted_idle(int stages, int micro_batches);

class Stage {
  public:
    // One of `stages`: that of rank peers.rank().rank(). Its `layers` take [samples, input_width],
    // and all but the last give such an output, too. Everything given must outlive the stage.
    // Throws std::invalid_argument if this rank has no stage.
    Stage(Peers& peers, Device& device, Sequential& layers, int stages, int input_width);

    // Adds the gradient of the batch's mean loss to this stage's parameters, as accumulate of
    // chapter 04 does for a whole network: the same bits. All stages call it together. The first
    // one reads `inputs` [samples, input_width], the last one `labels` [samples], and it returns
    // the loss; the others return 0. Waits for the device.
    double accumulate(const Tensor& inputs, const Labels& labels, int micro_batch);

    // What this rank has computed since the last call, and when: "forward 1", "backward 1", ...
    std::vector<StreamSpan> spans() { return track_.read(rank_); }

  private:
    // A micro-batch that is on its way through this stage.
    struct InFlightMicroBatch {
        explicit InFlightMicroBatch(Device& device) : tape(device) {}

        Tape tape;
        MicroBatch part;
        std::string number;                 // from 1
        std::shared_ptr<Parameter> input;   // what the stage before has sent
        ArenaBuffer<float> input_gradient;  // what it gets back
        ArenaBuffer<float> output;          // what the next one gets
        Variable end;                       // backward begins here
    };

    bool is_first() const { return rank_ == 0; }
    bool is_last() const { return rank_ == stages_ - 1; }
    void forward(InFlightMicroBatch& in_flight, const Tensor& inputs, const Labels& labels);
    void backward(InFlightMicroBatch& in_flight);
    Variable receive_input(InFlightMicroBatch& in_flight);
    Variable hand_on(InFlightMicroBatch& in_flight, Variable output);
    void send(const ArenaBuffer<float>& data, int to, const std::string& name);

    Peers& peers_;
    Device& device_;
    Sequential& layers_;
    const int rank_, stages_, input_width_;
    StreamTrack track_;
    Stream sending_;  // so that a neighbour which has no time yet does not keep us from computing
    Event computed_;
    std::vector<std::unique_ptr<InFlightMicroBatch>> in_flight_;
};

}  // namespace ddp
