#include "09_all_reduce/support/algorithms.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "common/report/bench.hpp"

namespace ddp {
namespace {

__global__ void fill_with_thirds(float* data, std::size_t count, int rank) {
    for (std::size_t i : grid_range(count))
        data[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 13) % 1009) / 3;
}

// FNV-1a over the words of each rank's `data`, by rank.
std::vector<std::string> hashes_of_all(Rank& rank, const ArenaBuffer<float>& data,
                                       std::size_t count) {
    std::vector<float> host = data.to_host_now();
    host.resize(count);
    std::uint64_t hash = 14'695'981'039'346'656'037u;
    for (const float value : host)
        hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 1'099'511'628'211u;
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
    return rank.all_gather(text);
}

}  // namespace

double seconds_of_one(Peers& peers, const AllReduceAlgorithm<float>& algorithm, AllReduceData& data,
                      std::size_t count) {
    Stream stream;
    peers.rank().barrier();
    const Stopwatch watch;
    algorithm.run(data.input.data(), data.output.data(), count, ReduceOp::sum, stream,
                  algorithm.name);
    peers.synchronize(stream);
    return peers.rank().max_over_ranks(watch.seconds());
}

std::vector<std::string> hashes_of_one(Peers& peers, const AllReduceAlgorithm<float>& algorithm,
                                       AllReduceData& data, std::size_t count) {
    Stream stream;
    peers.rank().barrier();
    launch(stream, grid_for(count), fill_with_thirds, data.input.data(), count,
           peers.rank().rank());
    algorithm.run(data.input.data(), data.output.data(), count, ReduceOp::sum, stream,
                  algorithm.name);
    peers.synchronize(stream);
    return hashes_of_all(peers.rank(), data.output, count);
}

std::vector<std::string> hashes_of(Communicator& communicator, std::size_t count) {
    ArenaBuffer<float> data = communicator.allocate<float>(count);
    Rank& rank = communicator.rank();
    Stream stream;
    rank.barrier();
    launch(stream, grid_for(count), fill_with_thirds, data.data(), count, rank.rank());
    communicator.all_reduce(data.data(), data.data(), count, ReduceOp::sum, stream);
    communicator.synchronize(stream);
    return hashes_of_all(rank, data, count);
}

double bus_bandwidth(int ranks, std::size_t bytes, double seconds) {
    return ranks == 1 ? NAN : two_shot_seconds({0, 1}, ranks, bytes) / seconds;
}

}  // namespace ddp
