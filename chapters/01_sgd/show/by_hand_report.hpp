#pragma once
// The descents by hand beside each other, and a result that is read too early.
#include <filesystem>

#include "01_sgd/by_hand.hpp"

namespace ddp {

void show_by_hand(Device& device, const std::vector<House>& houses, const HouseData& data,
                  int epochs, double learning_rate);

// The houses, for the picture: as a CSV file beside `csv`, with the ending _houses. With an empty
// path none.
void write_houses(const std::filesystem::path& csv, const std::vector<House>& houses);

}  // namespace ddp
