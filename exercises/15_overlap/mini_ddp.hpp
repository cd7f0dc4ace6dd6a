#pragma once
// Exercise mini_ddp: DistributedDataParallel in thirty lines, with a bucket for each gradient.
//
//     2 ranks, one parameter w, a learning rate of 0.1
//
//                             rank 0   rank 1
//     what each has drawn        1        5
//     the constructor            1        1      rank 0's
//     own gradients              2        4
//     backward                   3        3      their mean
//     the optimizer's step      0.7      0.7     and so it goes on: equal for ever
//
// You may call: copy_from_rank_0(communicator, device, model); communicator.allocate<float>(n) and
// .all_reduce(input, output, n, ReduceOp::average, stream); parameter.gradient(), with .data(),
// .size() and .bytes(); event.record(stream) and stream.wait(event); cudaMemcpyAsync(); and
// loss.tape->backward(loss, is_final), which calls is_final(parameter) for each gradient as soon as
// the kernel that completes it is enqueued.
// The check also tries: one rank, two and three; a device that is slower than its host; all-reduces
// that are slower than backward.
#include <map>

#include "01_sgd/tape.hpp"
#include "11_data_parallel/replica.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

class MiniDdp {
  public:
    // Task begin. All ranks begin with rank 0's model.
    MiniDdp(Communicator& communicator, Device& device, Module& model);

    // Task overlap. Runs backward, and sends each gradient while backward goes on. What is enqueued
    // on the device's stream afterwards finds the mean over the ranks in every gradient. The host
    // does not wait.
    void backward(const Variable& loss);

  private:
    Communicator& communicator_;
    Device& device_;
    Parameters parameters_;
    std::map<const Parameter*, ArenaBuffer<float>> memory_;  // all_reduce takes a gradient there
    Stream wire_;                                            // of the all-reduces
    Event computed_{EventFor::order}, reduced_{EventFor::order};
};

}  // namespace ddp
