#pragma once
// The tables of `./book cluster scale`.
#include <string>
#include <vector>

#include "common/report/csv.hpp"
#include "tools/cluster/scaling.hpp"

namespace ddp {

// Prints a table, and writes its rows to `file`.
std::vector<std::string> scaling_columns();
void report_scaling(const ScalingOptions& options, const std::vector<ScalingPoint>& points,
                    CsvWriter& file);

}  // namespace ddp
