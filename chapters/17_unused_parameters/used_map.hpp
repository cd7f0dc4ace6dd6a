#pragma once
// The map of used parameters: one count per parameter that says on how many ranks the step's
// backward has reached it. Backward fills it on each rank; one all-reduce after the last bucket
// adds it up. (local_used_map_ in torch/csrc/distributed/c10d/reducer.cpp.)
#include <vector>

#include "15_overlap/ddp.hpp"

namespace ddp {

// Returns the bytes that a communicator must have for a UsedMap, besides ddp_arena_bytes.
std::size_t used_map_arena_bytes(const Module& model);

class UsedMap {
  public:
    // Takes its memory from the communicator. Everything passed must outlive this object. All ranks
    // construct theirs together.
    UsedMap(Communicator& communicator, Device& device, DistributedDataParallel& ddp);

    // Marks a parameter that this rank's backward has reached.
    void mark(const Parameter& parameter);

    // Copies the gradients of those `unreached` parameters that still have one from an earlier
    // step, because the optimizer has not cleared it. Such a gradient is in its bucket and will be
    // averaged; settle() restores it where no rank has used the parameter. Call it before the
    // parameters' buckets are sent. Replaces the copies of a step that was not settled.
    void keep_old_gradients(const Parameters& unreached);

    // Adds the maps of all ranks up. Enqueues only. All ranks call it together, after the last
    // bucket.
    void reduce();

    // Gives every gradient its value after the step: a parameter that only other ranks have used
    // gets the mean from its bucket; one that no rank has used is as it was before the step. Waits
    // for the sum only if this rank has left a parameter out. Returns the parameters that only
    // other ranks have used, and begins a new map. Call it after reduce().
    Parameters settle();

  private:
    std::size_t index_of(const Parameter& parameter) const {
        return ddp_.gradients().index_of(parameter);
    }

    Communicator& communicator_;
    Device& device_;
    DistributedDataParallel& ddp_;
    std::vector<int> used_;    // by parameter: 1 if this rank's backward has reached it, else 0
    std::vector<Tensor> old_;  // by parameter: the old gradient; empty where there is none
    ArenaBuffer<int> counts_;  // by parameter: used_, and after reduce() its sum over the ranks
    PinnedBuffer<int>&upload_, &sums_;  // used_ on its way to the device, and counts_ back
    Event uploaded_;
};

}  // namespace ddp
