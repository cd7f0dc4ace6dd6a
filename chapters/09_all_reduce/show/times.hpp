#pragma once
// The time of one all-reduce, and the bits that it gives. All ranks call these together.
#include "09_all_reduce/communicator.hpp"
#include "09_all_reduce/show/algorithms.hpp"

namespace ddp {

// Two arrays of one rank, in the arena.
struct AllReduceData {
    AllReduceData(Peers& peers, std::size_t most)
        : input(peers.allocate<float>(most)), output(peers.allocate<float>(most)) {}

    ArenaBuffer<float> input, output;
};

// One sum, from when all ranks are ready until the last one has it.
double seconds_of_one(Peers& peers, const AllReduceAlgorithm<float>& algorithm, AllReduceData& data,
                      std::size_t count);

// Returns a hash of the bits of every rank's sum, by rank. The numbers have to be rounded.
std::vector<std::string> hashes_of_one(Peers& peers, const AllReduceAlgorithm<float>& algorithm,
                                       AllReduceData& data, std::size_t count);

// Returns the hashes of the same numbers, summed by a communicator, on one host or on several.
std::vector<std::string> hashes_of(Communicator& communicator, std::size_t count);

// Returns the bus bandwidth, as nccl-tests defines it: bytes per second through each rank's port,
// if it gets 2 (N - 1) / N of the data. NaN for one rank.
double bus_bandwidth(int ranks, std::size_t bytes, double seconds);

}  // namespace ddp
