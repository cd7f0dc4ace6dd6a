#pragma once
// A unit: the parameters of one layer, end to end in one array, cut into a chunk for each rank.
//
//     linear1, three ranks     | weight ..................... . | bias .. . | padding |
//                              | chunk 0       | chunk 1        | chunk 2             |
//
// (FSDP1's flat parameter. FSDP2 cuts each parameter along its first dimension instead: a rank then
// has rows that can be named, but a chunk begins elsewhere in every sum.) A rank sums its chunk in
// the order that an all-reduce of the same array would take, so the bits are those of DDP.
#include <string>
#include <vector>

#include "03_network/layers/sequential.hpp"
#include "14_buckets/bucket_plan.hpp"

namespace ddp {

// Where the parameters of a layer are.
struct Unit {
    std::string name;         // of the layer
    Parameters parameters{};  // those that are learned
    std::size_t bucket = 0;   // in the plan
    std::size_t size = 0;     // elements, with the gap behind each parameter
    std::size_t chunk = 0;    // elements of each rank's chunk

    // Returns the elements of all chunks: the last one is padded.
    std::size_t padded(int ranks) const { return chunk * static_cast<std::size_t>(ranks); }
};

struct Units {
    BucketPlan plan;          // for DistributedDataParallel, too: one bucket for each unit
    std::vector<Unit> units;  // in the order of forward

    std::size_t largest(int ranks) const;  // elements of the largest unit, padded
    std::size_t total(int ranks) const;    // elements of all units, padded
};

// Makes a unit of each layer that learns. A layer's parameters have its name before the dot. Throws
// std::invalid_argument if no parameter is learned.
Units units_of(const Module& model, int ranks);

}  // namespace ddp
