#pragma once
// Which parameters has a step used: on this rank, and on any? A small array of counts, filled by
// backward, and summed over the ranks behind the last bucket.
// (local_used_map_ in torch/csrc/distributed/c10d/reducer.cpp.)
#include <vector>

#include "14_overlap/ddp.hpp"

namespace ddp {

// What a communicator must have for it besides ddp_arena_bytes.
std::size_t used_map_arena_bytes(const Module& model);

class UsedMap {
  public:
    // All must live longer. All ranks make theirs together.
    UsedMap(Communicator& communicator, Device& device, DistributedDataParallel& ddp);

    // This rank's backward has reached it.
    void mark(const Parameter& parameter);

    // Before the step's buckets are sent. A gradient that is there, though no backward since the
    // last reduced step has reached it, is an old one that nobody has cleared. It is in its bucket
    // and will be averaged; should no rank have used the parameter, it gets its old bits back.
    void keep_old_gradients(const Parameters& unreached);

    // Behind the last bucket: the sum over the ranks. Enqueues only. All ranks call it together.
    void reduce();

    // After reduce(). A parameter that only others have used becomes one with a gradient: the mean
    // that is in its bucket. One that nobody has used is as before the step. Waits for the sum if
    // this rank has left out any, otherwise for nothing. Returns those that only others have used,
    // and begins a new map.
    Parameters settle();

  private:
    std::size_t index_of(const Parameter& parameter) const {
        return ddp_.gradients().index_of(parameter);
    }

    Communicator& communicator_;
    Device& device_;
    DistributedDataParallel& ddp_;
    std::vector<int> used_;             // here, by gradient: 0 or 1
    std::vector<Tensor> old_;           // by gradient; empty where there is none
    ArenaBuffer<int> counts_;           // on how many ranks
    PinnedBuffer<int>&upload_, &sums_;  // used_ on its way to the device, and counts_ back
    Event uploaded_;
};

}  // namespace ddp
