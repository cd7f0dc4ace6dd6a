#pragma once
// Data parallel training at its simplest: every rank computes the gradients of its own samples,
// then all average them, and every rank's own optimizer takes the same step.
#include "10_data_parallel/replica.hpp"

namespace ddp {

class NaiveDdp {
  public:
    // Makes all ranks' models rank 0's. All three must live longer. Throws as copy_from_rank_0.
    NaiveDdp(Communicator& communicator, Device& device, Module& model);

    // After backward: each gradient becomes the mean of all ranks', one all-reduce after the other,
    // in the device's stream. Enqueues only. Throws std::logic_error for a parameter that has no
    // gradient on this rank: the others would wait for it.
    void average_gradients() { reduce_gradients(ReduceOp::average); }
    // The same with another operation: a sum is N times as long a step.
    void reduce_gradients(ReduceOp op);

  private:
    Communicator& communicator_;
    Device& device_;
    Parameters parameters_;           // that learn
    ArenaBuffer<float> transferred_;  // for the largest gradient
};

}  // namespace ddp
