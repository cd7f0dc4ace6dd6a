#pragma once
// Data parallel training at its simplest: every rank computes the gradients of its own samples, all
// ranks average the gradients, and the optimizer of every rank takes the same step.
#include "06_messages/support/kernel_loading.hpp"
#include "11_data_parallel/replica.hpp"

namespace ddp {

class NaiveDdp {
  public:
    // Copies rank 0's model to all ranks. `communicator`, `device` and `model` must outlive this
    // object. All ranks construct it together. Throws as copy_from_rank_0.
    NaiveDdp(Communicator& communicator, Device& device, Module& model);

    // Replaces each gradient by its mean over all ranks: one all-reduce after the other, in the
    // device's stream, after backward. Only enqueues. All ranks call it together. Throws
    // std::logic_error for a parameter that has no gradient on this rank.
    void average_gradients() { reduce_gradients(ReduceOp::average); }
    // Does the same with another operation. A sum makes the step world_size times as long.
    void reduce_gradients(ReduceOp op);

  private:
    Communicator& communicator_;
    Device& device_;
    FirstPass first_backward_;
    Parameters parameters_;           // those that are not frozen
    ArenaBuffer<float> transferred_;  // holds one gradient at a time: as large as the largest
};

}  // namespace ddp
