#pragma once
// The bytes that an all-reduce puts on the network, by its order.
#include <cstddef>

#include "10_nodes/placement.hpp"

namespace ddp {

// Returns the bytes that leave each node in an all-reduce of `bytes`, on `levels` levels.
double bytes_leaving_node(const Placement& placement, int levels, std::size_t bytes);

}  // namespace ddp
