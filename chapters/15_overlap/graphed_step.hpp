#pragma once
// --graph: a training step as one launch. Its kernels are captured, the all-reduces among them.
//
//     the first steps   launch by launch, until nothing is allocated or planned any more
//     the next one      captured: a graph
//     all others        two copies, which bring the batch to where the graph reads it, and a launch
//
// What changes from step to step must not be an argument of a kernel, for a graph keeps those. The
// batch lies in memory, and the numbers of the collectives do, too (07_broadcast/collective.cuh).
// The learning rate is an argument: when it changes, the step is captured anew.
#include <cstdint>
#include <functional>
#include <optional>

#include "15_overlap/training.hpp"
#include "common/gpu/captured_graph.hpp"

namespace ddp {

class GraphedStep {
  public:
    // Makes the steps of `trainer` from now on; the first `called` of them, 2 or more, launch by
    // launch. All ranks make theirs together. Everything passed must outlive the training. Throws
    // OptionError if collectives of `communicator` cannot be captured.
    //
    // A graph uses blocks of the device that are free between steps: a tensor that is to survive a
    // step must be made before the first one.
    GraphedStep(DdpTrainer& trainer, Communicator& communicator, Device& device,
                const Optimizer& optimizer, int called);

    // Returns what a run tells in the end: "27 of 30 steps were launches of a graph of 25 kernels,
    // copies and fills".
    std::string summary() const;

  private:
    using Step = std::function<void(const Batch&)>;
    void make(const Batch& batch, const Step& step);
    void capture(const Batch& batch, const Step& step);

    Rank& rank_;
    Peers& peers_;
    Device& device_;
    const Optimizer& optimizer_;
    const int called_;
    int steps_ = 0;
    Batch batch_;  // where the graph reads
    std::optional<CapturedGraph> graph_;
    std::uint64_t collectives_ = 0;  // of the graph
    double learning_rate_ = 0;       // in the graph
    Event ended_[2];                 // the last launch, and the one before, in turns
};

}  // namespace ddp
