#pragma once
// Two ways to train with parameters that a step does not use: FindUnused, where the graph changes,
// and StaticGraph, where it does not. Both plug into the hooks of DistributedDataParallel.
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

// Returns the parameters' names: "a, b".
std::string names_of(const Parameters& parameters);

// find_unused_parameters: searches the graph in every step, and reduces a map of the parameters
// that were used. For graphs that differ from step to step and from rank to rank.
class FindUnused {
  public:
    // Everything passed must outlive this object. All ranks construct theirs together. The buckets
    // of `ddp` must not be rebuilt: one step's order is not that of the next.
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

// static_graph: takes the parameters that the first step leaves out on this rank as unused for
// good. Nothing is searched, the map is reduced once, and buckets may be rebuilt.
class StaticGraph {
  public:
    // Everything passed must outlive this object; `ddp` has made no step yet. All ranks construct
    // theirs together.
    StaticGraph(Communicator& communicator, Device& device, DistributedDataParallel& ddp);
    // Takes all hooks but before_forward. A later backward that uses other parameters throws
    // std::runtime_error with their names.
    void plug_into(DdpHooks& hooks);

  private:
    void end_first_step();

    UsedMap map_;
    bool is_first_ = true;
    Parameters unused_;          // by this rank
    Parameters used_by_others_;  // those of unused_ that another rank uses
};

}  // namespace ddp
