#pragma once
// Which axis goes where: large models on meshes that this machine does not have.
#include <filesystem>

namespace ddp {

// Prints what each axis costs, simulated, and which mesh is fastest; writes all of it to `csv`.
void show_axis_costs(const std::filesystem::path& csv);

}  // namespace ddp
