#pragma once
// The bytes that pass the ports: predicted, and measured over a simulated link.
#include "05_ranks/rank.hpp"
#include "common/report/csv.hpp"
#include "common/report/options.hpp"

namespace ddp {

// One all-reduce of each kind over the link of `common`, or one of 100 MB/s and 100 us: a table on
// rank 0, and rows in `file`: "link", way, ranks, bytes, seconds, expected seconds, bus bandwidth.
// All ranks of one host call this together, two or more.
void show_link(Rank& rank, const CommonOptions& common, CsvWriter& file);

}  // namespace ddp
