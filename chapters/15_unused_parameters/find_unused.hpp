#pragma once
// Two ways to live with parameters that a step does not use. Both plug into the named points of
// DistributedDataParallel.
//
//     DistributedDataParallel ddp(*communicator, device, model, {.rebuild_buckets = false});
//     FindUnused unused(*communicator, device, ddp);
//     DdpHooks points;
//     unused.plug_into(points);
//     ddp.set_hooks(points);
#include "15_unused_parameters/used_map.hpp"

namespace ddp {

// Those of `parameters` on which `output` does not depend. A search through the graph from its end,
// before backward: what it does not find will get no gradient.
Parameters unreached_from(Variable output, const Parameters& parameters);

// "a, b": their names.
std::string names_of(const Parameters& parameters);

// find_unused_parameters: a search in every step, and a map of what was used. For graphs that
// differ from step to step and from rank to rank.
class FindUnused {
  public:
    // All must live longer. All ranks make theirs together, of a `ddp` whose buckets are not
    // rebuilt: no step's order is that of the others.
    FindUnused(Communicator& communicator, Device& device, DistributedDataParallel& ddp);
    void plug_into(DdpHooks& hooks);

    // Whether any step's search has found any on this rank.
    bool has_found() const { return has_found_; }

  private:
    DistributedDataParallel& ddp_;
    UsedMap map_;
    bool has_found_ = false;
};

// static_graph: what the first step does not use on this rank, no step will. Nothing is searched;
// the map is reduced once. Buckets may be rebuilt.
class StaticGraph {
  public:
    // As FindUnused; `ddp` has made no step yet.
    StaticGraph(Communicator& communicator, Device& device, DistributedDataParallel& ddp);
    // A backward that then uses other parameters throws std::runtime_error naming them.
    void plug_into(DdpHooks& hooks);

  private:
    void first_step_ends();

    UsedMap map_;
    bool is_first_ = true;
    Parameters unused_, used_by_others_;  // by this rank, and of these
};

}  // namespace ddp
