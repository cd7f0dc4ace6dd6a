#pragma once
// Trains with parameters that no step uses. StaticGraph plugs into the hooks of
// DistributedDataParallel, as FindUnused does (find_unused.hpp).
#include "17_unused_parameters/used_map.hpp"

namespace ddp {

// Returns the parameters' names: "a, b".
std::string names_of(const Parameters& parameters);

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
    Parameters used_by_others_;  // of unused_: used by another rank
};

}  // namespace ddp
