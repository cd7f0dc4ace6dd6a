// The exercise owners: which rank has which element. Read exercises/22_sharded/README.md first.
#include "exercises/22_sharded/owners.hpp"

#include <algorithm>
#include <numeric>

namespace ddp {
// stub
namespace {

std::size_t rounded_up(std::size_t elements, int world_size) {
    const auto ranks = static_cast<std::size_t>(world_size);
    return (elements + ranks - 1) / ranks;
}

std::size_t shard_size(const std::vector<std::size_t>& sizes, int world_size) {
    return rounded_up(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}), world_size);
}

}  // namespace
// end stub

Place flat_place(const std::vector<std::size_t>& sizes, int world_size, std::size_t parameter,
                 std::size_t element) {
    // stub: flat_place
    //: Which number has the element among all elements of the model?
    const auto own = sizes.begin() + static_cast<std::ptrdiff_t>(parameter);
    const std::size_t place = std::accumulate(sizes.begin(), own, element);
    const std::size_t shard = shard_size(sizes, world_size);
    return {static_cast<int>(place / shard), place % shard};
    // end stub
}

std::vector<Part> flat_parts(const std::vector<std::size_t>& sizes, int world_size, int rank) {
    // stub: flat_parts
    //: A shard and a parameter are two ranges of the same line. What have they in common?
    const std::size_t shard = shard_size(sizes, world_size);
    const std::size_t first = static_cast<std::size_t>(rank) * shard, last = first + shard;
    std::vector<Part> parts;
    std::size_t before = 0;
    for (std::size_t p = 0; p < sizes.size(); p++) {
        const std::size_t begin = std::max(first, before);
        const std::size_t end = std::min(last, before + sizes[p]);
        if (begin < end)
            parts.push_back({p, begin - before, end - before});
        before += sizes[p];
    }
    return parts;
    // end stub
}

Elements row_part(std::size_t rows, std::size_t row_size, int world_size, int rank) {
    // stub: row_part
    //: Where do rows end? A rank may begin behind that.
    const std::size_t most = rounded_up(rows, world_size);
    const std::size_t begin = std::min(rows, static_cast<std::size_t>(rank) * most);
    const std::size_t end = std::min(rows, begin + most);
    return {begin * row_size, end * row_size};
    // end stub
}

}  // namespace ddp
