#pragma once
// The experiment with all four algorithms, with a slow worker and without, as a table.
#include <filesystem>

#include "13_async/support/experiment.hpp"

namespace ddp {

// Trains eight times. Rank 0 prints the results and writes the losses to the file `path` (empty:
// none). All ranks call it together.
void show_experiment(Rank& rank, const FashionMnist& data, const ExperimentOptions& options,
                     const std::filesystem::path& path);

}  // namespace ddp
