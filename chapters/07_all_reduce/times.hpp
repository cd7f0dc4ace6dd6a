#pragma once
// What all-reduces take, what the memory allows, and which bits they give. All ranks call these
// together; rank 0 is told.
#include "07_all_reduce/ways.hpp"

namespace ddp {

// Two arrays of one rank, in the pool.
struct AllReduceData {
    AllReduceData(Peers& peers, std::size_t most)
        : input(peers.allocate<float>(most)), output(peers.allocate<float>(most)) {}

    PoolBuffer<float> input, output;
};

// One sum, from when all ranks are ready until the last one has it.
double seconds_of_one(Peers& peers, const AllReduceWay<float>& way, AllReduceData& data,
                      std::size_t count);

// The median of `rounds` sums, enqueued at once, by the stream's clock.
double all_reduce_seconds(Peers& peers, const AllReduceWay<float>& way, AllReduceData& data,
                          std::size_t count, int rounds);

// How long the bytes that an all-reduce must move take if nothing else is done: every rank reads
// and writes as many as its array has. By a plain loop that adds one array to another (which moves
// 3/2 as many), on all ranks at the same time.
double memory_limit_seconds(Peers& peers, AllReduceData& data, std::size_t count, int rounds);

// What every rank has as the sum of numbers that have to be rounded: a hash of its bits, by rank.
std::vector<std::string> hashes_of_one(Peers& peers, const AllReduceWay<float>& way,
                                       AllReduceData& data, std::size_t count);

// What nccl-tests calls the bus bandwidth: bytes per second through each rank's port, if it gets
// 2 (N - 1) / N of the data. NaN for one rank.
double bus_bandwidth(int ranks, std::size_t bytes, double seconds);

}  // namespace ddp
