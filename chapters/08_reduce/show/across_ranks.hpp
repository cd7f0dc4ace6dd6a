#pragma once
// The time of a sum across ranks, predicted and measured, over a simulated link.
#include <optional>

#include "common/report/options.hpp"
#include "common/report/table.hpp"

namespace ddp {

// Returns a table with a row for each of several jobs of threads; with one row, if options.ranks or
// the program that has started this process says how many ranks there are. All processes of a job
// call it together, before they make any other World. Nothing is returned in a process without rank
// 0, which is to print it. Prints who holds what in one of these jobs at once. Throws
// std::runtime_error if a sum is wrong.
std::optional<Table> sum_across_ranks(const CommonOptions& options);

}  // namespace ddp
