#pragma once
// Trains with parameters that a step does not use: FindUnused plugs into the hooks of
// DistributedDataParallel.
//
//     DistributedDataParallel ddp(*communicator, device, model, {.rebuild_buckets = false});
//     FindUnused unused(*communicator, device, ddp);
//     DdpHooks hooks;
//     unused.plug_into(hooks);
//     ddp.set_hooks(hooks);
#include "17_unused_parameters/used_map.hpp"

namespace ddp {

// Returns those of `parameters` on which `output` does not depend, so that backward from it gives
// them no gradient. Searches the graph once from its end, on the host, and computes nothing.
Parameters unreached_from(Variable output, const Parameters& parameters);

// find_unused_parameters: searches the graph in every step, and reduces a map of the parameters
// that were used. For graphs that differ from step to step and from rank to rank.
class FindUnused {
  public:
    // Everything passed must outlive this object. All ranks construct theirs together. The buckets
    // of `ddp` must not be rebuilt: the order changes from step to step.
    FindUnused(Communicator& communicator, Device& device, DistributedDataParallel& ddp);
    // Takes all hooks but before_forward.
    void plug_into(DdpHooks& hooks);

    // Returns whether any step so far had an unused parameter on this rank. If not, the search and
    // the map were not needed here.
    bool has_found() const { return has_found_; }

  private:
    DistributedDataParallel& ddp_;
    UsedMap map_;
    bool has_found_ = false;
};

}  // namespace ddp
