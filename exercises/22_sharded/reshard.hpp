#pragma once
// The contract of the exercise reshard: a checkpoint that some ranks have saved, each its shard, is
// loaded by another number of ranks.
#include <cstddef>
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// A model of `count` elements, one or more, is cut into shards of one length: `count` divided by
// the number of ranks, rounded up. The last shards may have padding at their end, or nothing else.
// File r has the shard of rank r, padding included.

// Elements offset, ..., offset + count - 1 of a file become elements to, to + 1, ... of what reads.
struct Read {
    int file;
    std::size_t offset, count, to;

    bool operator==(const Read&) const = default;
};

// Task shard_reads. `from_ranks` ranks have saved. Returns what rank `rank` of `to_ranks` reads to
// have its shard, file by file: each of its elements once, and no padding.
std::vector<Read> shard_reads(std::size_t count, int from_ranks, int to_ranks, int rank);

// Task parameter_reads. `sizes` has the number of elements of each parameter, which stand in the
// model one after the other. Returns what one process reads to have parameter number `parameter` as
// a whole, as it stands in a full checkpoint. An empty parameter needs nothing.
std::vector<Read> parameter_reads(const std::vector<std::size_t>& sizes, int from_ranks,
                                  std::size_t parameter);

}  // namespace ddp
