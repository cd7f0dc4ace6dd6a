#pragma once
// Time and bus bandwidth of all-reduces on several nodes, beside what the link between them allows.
#include <string>
#include <vector>

#include "common/report/csv.hpp"
#include "tests/bench/09_all_reduce/candidates.hpp"

namespace ddp {

// Prints time and bus bandwidth of `measurements`, of `ranks` ranks. Writes rows to `file`, which
// has machine_columns(): "machine", algorithm, ranks, bytes, seconds, the limit's seconds, bus
// bandwidth in bytes per second.
void report_machine(int ranks, const std::vector<AllReduceMeasurement>& measurements,
                    CsvWriter& file);
std::vector<std::string> machine_columns();

}  // namespace ddp
