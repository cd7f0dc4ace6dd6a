#pragma once
// The memory of a rank's tapes, predicted by counting their tensors.
#include "24_mesh/support/mesh_training.hpp"

namespace ddp {

// Returns the bytes of the activations that stage `stage` keeps at the same time, for as many
// micro-batches as its schedule has in flight there.
std::size_t predicted_activations(const MeshPlan& plan, int stage);

}  // namespace ddp
