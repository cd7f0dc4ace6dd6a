#pragma once
// Three reports: every mesh beside one rank, who works when, and which axis goes where.
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

// Runs GPipe and 1F1B, each with each number of micro-batches, with a stage on each rank, whose
// layers sleep in place of computing: many stages can sleep at once on a few cores. Rank 0 prints
// how long they idle; the spans go to `csv`. All ranks call it together.
void show_schedules(Rank& rank, const std::vector<int>& micro_batches,
                    const std::filesystem::path& csv);

// Prints what each axis costs large models on clusters that this machine does not have, simulated,
// and which mesh is fastest.
void show_axis_costs();

}  // namespace ddp
