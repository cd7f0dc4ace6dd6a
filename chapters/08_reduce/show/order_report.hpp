#pragma once
// A table of the same floats, summed in several orders.
#include <cstdint>
#include <filesystem>

namespace ddp {

// Adds up about a million floats by the loops of sum_orders.hpp and by the kernels, in blocks of
// `block` threads; prints each sum and how far it is from the exact one, and writes rows to the
// file `csv` unless that is empty: order, sum, units of the last place.
void show_orders(std::uint64_t seed, unsigned int block, const std::filesystem::path& csv);

}  // namespace ddp
