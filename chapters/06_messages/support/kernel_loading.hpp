#pragma once
// A GPU loads a kernel at its first launch, and cuBLAS loads one more for each shape of a product.
// Loading may wait until every kernel that runs has ended. So it must not happen on one rank while
// a kernel of another rank waits for that rank:
//
//     rank 0   backward, then all_reduce: its kernel waits for rank 1
//     rank 1   backward: loads a kernel, which waits until rank 0's all_reduce has ended
//
// Where the shapes are known, the cure is to compute each of them once before the training, and to
// meet at a barrier. Otherwise all ranks meet in the first pass, before and after what may load.
#include "05_ranks/rank.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {

// The first time that a training comes to a place at which ranks wait for each other. All ranks
// make the same calls.
class FirstPass {
  public:
    // Returns whether it has ended. On a CPU, which loads nothing, it never begins.
    bool is_over() const { return is_over_; }
    void end() { is_over_ = true; }
    // Waits until all ranks have done what they have enqueued on these streams, unless the pass is
    // over.
    template <class... Streams>
    void meet(Rank& rank, Streams&... streams) {
        if (is_over_)
            return;
        (streams.synchronize(), ...);
        rank.barrier();
    }
    // Meets, and ends the pass: every rank has loaded what it needs.
    void wait_for_all_ranks(Rank& rank, Stream& stream) {
        meet(rank, stream);
        end();
    }
    // Calls `collective`, which enqueues one in the midst of a pass: there are kernels to load
    // before it and after it.
    template <class Collective>
    void enclose(Rank& rank, Stream& stream, Collective collective) {
        meet(rank, stream);
        collective();
        wait_for_all_ranks(rank, stream);
    }

  private:
    bool is_over_ = !loads_kernels();
};

}  // namespace ddp
