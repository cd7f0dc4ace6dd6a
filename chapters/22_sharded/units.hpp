#pragma once
// A unit: the parameters of one block, end to end in one array, cut into a chunk for each rank.
//
//     linear1, three ranks     | weight ..................... . | bias .. . | padding |
//                              | chunk 0       | chunk 1        | chunk 2             |
//
// A rank sums its chunk in the order of an all-reduce of the same array, so the bits equal DDP's.
// This is FSDP1's flat parameter. FSDP2 cuts each parameter along its first dimension instead: a
// rank then has rows with a name, but chunks begin elsewhere, and sums have a different order.
#include <string>
#include <vector>

#include "14_buckets/bucket_plan.hpp"
#include "22_sharded/blocks.hpp"

namespace ddp {

// Where the parameters of a block, or of the root, are.
struct Unit {
    std::string name;
    Parameters parameters{};             // those that are learned
    std::vector<std::size_t> numbers{};  // of each: its index in the list of learned parameters
    std::size_t bucket = 0;              // in the plan
    std::size_t size = 0;                // elements, with the gap after each parameter
    std::size_t chunk = 0;               // elements of each rank's chunk

    // Returns the elements of all chunks: the last one is padded.
    std::size_t padded(int ranks) const { return chunk * static_cast<std::size_t>(ranks); }
};

struct Units {
    BucketPlan plan;          // for DistributedDataParallel, too: one bucket for each unit
    std::vector<Unit> units;  // the root, if there is one; then the blocks, in the order of forward
    std::size_t first_block = 0;  // 1 after a root
};

// Makes a unit of each block that learns, and one of the parameters outside all blocks or in
// several of them: the root. With several nodes of `ranks` ranks each, a rank has a chunk for each
// node. Throws std::invalid_argument if no parameter is learned.
Units units_of(const Blocks& blocks, int ranks, int nodes = 1);

}  // namespace ddp
