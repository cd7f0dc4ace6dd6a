#pragma once
// Prints which gradients travel together.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

namespace ddp {

// Prints the buckets of three networks, in the first iteration and in all later ones. `cap_bytes`
// as in first_plan. Writes a row for each gradient to the file `csv` (empty: none).
void show_plans(std::optional<std::size_t> cap_bytes, std::uint64_t seed,
                const std::filesystem::path& csv);

}  // namespace ddp
