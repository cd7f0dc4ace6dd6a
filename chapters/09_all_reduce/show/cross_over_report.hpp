#pragma once
// Alpha and beta fitted here, the sizes that they say, and those that were measured; as a table.
#include <vector>

#include "09_all_reduce/show/candidates.hpp"
#include "common/report/csv.hpp"
#include "common/report/options.hpp"

namespace ddp {

// Over the link of `common`, or one of 100 MB/s and 1 ms, ring against reduce + broadcast, whose
// runs it writes to `file`: "cross-over", algorithm, ranks, bytes, seconds, expected seconds, bus
// bandwidth. And in memory, two-shot against one-shot, as `measurements` have it; rank 0 needs
// these, and there is no such line without any. Rank 0 prints. All ranks of one host call this
// together, two or more.
void show_cross_overs(Rank& rank, const CommonOptions& common,
                      const std::vector<AllReduceMeasurement>& measurements, CsvWriter& file);

}  // namespace ddp
