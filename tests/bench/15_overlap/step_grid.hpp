#pragma once
// The timelines of steps over slow and fast links, with small and large buckets: a grid, for the
// reader who moves from one to the next (the web edition).
#include "common/report/options.hpp"

namespace ddp {

// Trains the eight layers over each link with each cap, on the ranks of `common`, and writes the
// steps of median length beside `common.csv`: cap_mib (0: each gradient by itself), link_mb_s, and
// the columns of write_timeline.
void record_step_grid(const CommonOptions& common, int batch);

}  // namespace ddp
