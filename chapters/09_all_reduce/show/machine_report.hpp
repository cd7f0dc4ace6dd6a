#pragma once
// The times of the all-reduces on this machine, as tables: a row for each algorithm, a column for
// each size.
#include <vector>

#include "09_all_reduce/show/candidates.hpp"
#include "common/report/csv.hpp"

namespace ddp {

// Prints time and bus bandwidth of `measurements`, of `ranks` ranks of this machine or of several
// hosts, and writes rows to `file`: "machine", way, ranks, bytes, seconds, the limit's seconds, bus
// bandwidth in bytes per second.
void report_machine(int ranks, bool on_several_hosts,
                    const std::vector<AllReduceMeasurement>& measurements, CsvWriter& file);

}  // namespace ddp
