#pragma once
// The tables of `./book cluster where`. A wrong answer costs a factor, and no error message.
#include <string>
#include <vector>

#include "common/report/csv.hpp"
#include "tools/cluster/networks.hpp"
#include "tools/cluster/places.hpp"

namespace ddp {

// Prints the places and the networks, writes a row for each rank to `file`, and returns whether no
// two ranks share a core.
std::vector<std::string> where_columns();
bool report_where(const Job& job, const std::vector<RankPlace>& places,
                  const std::vector<NodeNetwork>& networks, CsvWriter& file);

}  // namespace ddp
