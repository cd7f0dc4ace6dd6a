// The exercise reshard: shards of four ranks, loaded by three. Read exercises/22_sharded/README.md
// first.
#include "exercises/22_sharded/reshard.hpp"

#include <algorithm>
#include <numeric>

namespace ddp {
// stub
namespace {

std::size_t shard_size(std::size_t count, int ranks) {
    const auto n = static_cast<std::size_t>(ranks);
    return (count + n - 1) / n;
}

// Returns the reads of elements begin, ..., end - 1 of the model.
std::vector<Read> reads_of(std::size_t begin, std::size_t end, std::size_t file_size) {
    std::vector<Read> reads;
    for (std::size_t at = begin; at < end;) {
        const std::size_t file = at / file_size;
        const std::size_t until = std::min(end, (file + 1) * file_size);
        reads.push_back({static_cast<int>(file), at % file_size, until - at, at - begin});
        at = until;
    }
    return reads;
}

}  // namespace
// end stub

std::vector<Read> shard_reads(std::size_t count, int from_ranks, int to_ranks, int rank) {
    // stub: shard_reads
    //: Which elements of the model does this rank need? Which of them does a file have?
    const std::size_t own = shard_size(count, to_ranks);
    const std::size_t begin = static_cast<std::size_t>(rank) * own;
    return reads_of(begin, std::min(count, begin + own), shard_size(count, from_ranks));
    // end stub
}

std::vector<Read> parameter_reads(const std::vector<std::size_t>& sizes, int from_ranks,
                                  std::size_t parameter) {
    // stub: parameter_reads
    //: Ask again, for other elements of the model.
    const std::size_t all = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
    const std::size_t before = std::accumulate(
        sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(parameter), std::size_t{0});
    return reads_of(before, before + sizes[parameter], shard_size(all, from_ranks));
    // end stub
}

}  // namespace ddp
