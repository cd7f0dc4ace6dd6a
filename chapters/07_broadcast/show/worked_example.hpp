#pragma once
// The file for seven readers, as a table.
#include <filesystem>

#include "05_ranks/rank.hpp"
#include "common/report/csv.hpp"

namespace ddp {

// Brings a file of 5 MB from rank 0 to all others in every way, over a simulated link of 1 MB/s,
// and prints on rank 0 what was predicted, what was measured and when each of them had it. The run
// is faster than the example; all it prints is in the example's units. Writes rows to `file`:
// "worked example", algorithm, ranks, bytes, seconds, predicted seconds. Writes beside `csv`, as
// NAME_readers.csv, from when to when each reader receives the file. Two or more ranks call it.
void show_worked_example(Rank& rank, CsvWriter& file, const std::filesystem::path& csv);

}  // namespace ddp
