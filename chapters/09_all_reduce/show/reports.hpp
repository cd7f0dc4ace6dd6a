#pragma once
// The tables of the run: the link, the memory of this machine, and where one all-reduce gets ahead
// of another.
#include <string>
#include <vector>

#include "09_all_reduce/show/candidates.hpp"
#include "common/report/csv.hpp"
#include "common/report/options.hpp"

namespace ddp {

// One all-reduce of each kind over the link of `common`, or one of 100 MB/s and 100 us: a table on
// rank 0, and rows in `file`: "link", algorithm, ranks, bytes, seconds, expected seconds, bus
// bandwidth. All ranks of one host call this together, two or more.
void show_link(Rank& rank, const CommonOptions& common, CsvWriter& file);

// Prints time and bus bandwidth of `measurements`, of `ranks` ranks `where` ("of this machine"),
// and what `limit` is in words. Writes rows to `file`, which has report_columns(): "machine",
// algorithm, ranks, bytes, seconds, the limit's seconds, bus bandwidth in bytes per second.
void report_machine(int ranks, const std::string& where, const std::string& limit,
                    const std::vector<AllReduceMeasurement>& measurements, CsvWriter& file);
std::vector<std::string> report_columns();

// Over the link of `common`, or one of 100 MB/s and 1 ms, ring against reduce + broadcast, whose
// runs it writes to `file`: "cross-over", algorithm, ranks, bytes, seconds, expected seconds, bus
// bandwidth. And in memory, two-shot against one-shot, as `measurements` have it; rank 0 needs
// these, and there is no such line without any. Rank 0 prints. All ranks of one host call this
// together, two or more.
void show_cross_overs(Rank& rank, const CommonOptions& common,
                      const std::vector<AllReduceMeasurement>& measurements, CsvWriter& file);

}  // namespace ddp
