#pragma once
// The bill of each stage, for 1 to 8 ranks, as a table and a file.
#include <filesystem>

#include "05_ranks/world.hpp"

namespace ddp {

// Prints on rank 0 what a step of Adam on an MLP of these widths takes, and writes it to `csv`.
void show_bill(Rank& rank, const std::vector<int>& widths, int batch,
               const std::filesystem::path& csv);

}  // namespace ddp
