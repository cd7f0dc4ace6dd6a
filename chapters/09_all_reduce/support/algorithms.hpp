#pragma once
// The all-reduces of this chapter side by side, under one signature; what one of them takes, and
// the bits that it gives. All ranks call what stands here together.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "07_broadcast/collective.hpp"
#include "09_all_reduce/all_reduce.hpp"
#include "09_all_reduce/communicator.hpp"
#include "09_all_reduce/cost.hpp"
#include "09_all_reduce/host_ring.hpp"

namespace ddp {

template <class T>
struct AllReduceAlgorithm {
    std::string name;
    std::function<void(const T* input, T* output, std::size_t count, ReduceOp op, Stream& stream,
                       const std::string& name)>
        run;
    double (*predicted_seconds)(const CostModel& message, int ranks, std::size_t bytes);
    std::size_t most;  // elements that it takes
};

// All of them over `peers`, for up to `most` elements. The host ring takes room in the arena for a
// chunk of them.
template <class T>
std::vector<AllReduceAlgorithm<T>> all_reduce_algorithms(Peers& peers, std::size_t most) {
    const auto host_ring = std::make_shared<HostRing<T>>(peers, most);
    const auto run_host_ring = [host_ring](const T* input, T* output, std::size_t count,
                                           ReduceOp op, Stream& stream, const std::string& name) {
        host_ring->all_reduce(input, output, count, op, stream, name);
    };
    std::vector<AllReduceAlgorithm<T>> algorithms;
    for (const ListedAllReduce& listed : all_reduces) {
        AllReduceAlgorithm<T>& algorithm = algorithms.emplace_back();
        algorithm.name = listed.name;
        algorithm.predicted_seconds = listed.predicted_seconds;
        algorithm.most = std::min(most, listed.max_bytes / sizeof(T));
        algorithm.run = run_host_ring;
        if (listed.run != nullptr)
            algorithm.run = [&peers, run = listed.run](const T* input, T* output, std::size_t count,
                                                       ReduceOp op, Stream& stream,
                                                       const std::string& name) {
                run(peers, reduction_call("all_reduce", input, output, count, op, name), stream);
            };
    }
    return algorithms;
}

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

// Returns the hashes of the same numbers, summed by a communicator, on one node or on several.
std::vector<std::string> hashes_of(Communicator& communicator, std::size_t count);

// Returns the bus bandwidth, as nccl-tests defines it: bytes per second through each rank's port,
// if it gets 2 (N - 1) / N of the data. NaN for one rank.
double bus_bandwidth(int ranks, std::size_t bytes, double seconds);

}  // namespace ddp
