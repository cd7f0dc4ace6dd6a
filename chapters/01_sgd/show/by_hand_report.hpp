#pragma once
// The descents by hand beside each other, and a result that is read too early.
#include <filesystem>

#include "01_sgd/by_hand.hpp"

namespace ddp {

// Runs the descents of by_hand.hpp and prints their results and times, then what read_too_early
// saw. Writes who did what and when to a CSV file beside `csv`, its name ending in _stream; an
// empty path writes none.
void show_by_hand(Device& device, const std::vector<House>& houses, const HouseData& data,
                  int epochs, double learning_rate, const std::filesystem::path& csv);

// Writes the houses for the picture: a CSV file beside `csv`, its name ending in _houses. An empty
// path writes none.
void write_houses(const std::filesystem::path& csv, const std::vector<House>& houses);

}  // namespace ddp
