#pragma once
// Every mesh of some ranks beside one rank: bits, loss and memory.
#include <filesystem>
#include <vector>

#include "24_mesh/support/mesh_training.hpp"

namespace ddp {

// Returns every mesh of this many ranks whose sizes divide the model's.
std::vector<MeshShape> all_shapes(int ranks);

// Trains on each mesh, and on rank 0 alone; rank 0 prints a row for each. All ranks call it
// together. Throws std::runtime_error if bits differ that must not.
void show_meshes(Rank& rank, const MeshPlan& plan, const std::vector<MeshShape>& shapes,
                 const std::filesystem::path& path);

}  // namespace ddp
