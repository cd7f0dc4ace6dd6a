#pragma once
// Which gradients travel together, for people.
#include <cstddef>
#include <cstdint>
#include <optional>

namespace ddp {

// The buckets of three networks in the first iteration, and in all later ones.
void show_plans(std::optional<std::size_t> cap_bytes, std::uint64_t seed);

}  // namespace ddp
