#pragma once
// Which sizes one-shot is measured at: its staging area is larger on a GPU.
#include <algorithm>
#include <vector>

#include "07_broadcast/collective.hpp"

namespace ddp::test {

// Returns at how many of these sizes, in bytes, there is a one-shot all-reduce.
inline int sizes_of_one_shot(const std::vector<std::size_t>& sizes) {
    return static_cast<int>(std::ranges::count_if(
        sizes, [](std::size_t bytes) { return bytes <= Collectives::most_staged; }));
}

}  // namespace ddp::test
