#pragma once
// The stages on clusters that are not there, by the simulator.
#include "common/report/csv.hpp"

namespace ddp {

// Prints what share of its speed a rank keeps, from one node to `max_ranks`, at each stage and
// with the hybrid, and writes it to `csv`.
void show_scaled_stages(int max_ranks, const std::filesystem::path& csv);

// Prints how many tokens a rank must have in a step for stage 3 to cost nothing: on this machine,
// which makes `operations_per_s` for a rank, and elsewhere.
void show_free_batches(double operations_per_s, double bytes_per_s, int ranks);

}  // namespace ddp
