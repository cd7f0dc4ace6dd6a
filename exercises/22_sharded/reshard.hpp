#pragma once
// Exercise reshard: some ranks have saved a checkpoint, and a different number of ranks loads it.
//
//     7 elements    saved by 2 ranks     0 1 2 3 | 4 5 6 .       (. is padding)
//                   loaded by 3 ranks    0 1 2 | 3 4 5 | 6 . .
//
//     rank 1 of 3 reads    {file 0, offset 3, count 1, to 0}, {file 1, offset 0, count 2, to 1}
//
// All shards have one length: the elements divided by the ranks, rounded up. File r has the shard
// of rank r, with its padding.
// The check also tries: more ranks than elements, parameters without elements.
#include <cstddef>
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// Elements offset, ..., offset + count - 1 of a file become elements to, to + 1, ... of the result.
struct Read {
    int file;
    std::size_t offset, count, to;

    bool operator==(const Read&) const = default;
};

// Task shard_reads. Returns what rank `rank` of `to_ranks` reads to get its shard, file by file:
// each element once, and no padding.
std::vector<Read> shard_reads(std::size_t count, int from_ranks, int to_ranks, int rank);

// Task parameter_reads. Returns what one process reads to get a whole parameter. `sizes` has the
// numbers of elements of all parameters, which stand in the model one after the other.
std::vector<Read> parameter_reads(const std::vector<std::size_t>& sizes, int from_ranks,
                                  std::size_t parameter);

}  // namespace ddp
