#include "07_all_reduce/times.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "common/report/bench.hpp"
#include "common/report/stats.hpp"

namespace ddp {
namespace {

constexpr int warm_up = 2;

__global__ void add_to_array(float* sum, const float* x, std::size_t count) {
    for (std::size_t i : grid_range(count))
        sum[i] += x[i];
}

__global__ void fill_with_thirds(float* data, std::size_t count, int rank) {
    for (std::size_t i : grid_range(count))
        data[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 13) % 1009) / 3;
}

// Seconds until the last rank comes here, of those that each has on its watch.
double until_the_last(Rank& rank, const Stopwatch& watch) {
    double slowest = 0;
    for (const std::string& each : rank.all_gather(std::to_string(watch.seconds())))
        slowest = std::max(slowest, std::stod(each));
    return slowest;
}

}  // namespace

double seconds_of_one(Peers& peers, const AllReduceWay<float>& way, AllReduceData& data,
                      std::size_t count) {
    Stream stream;
    peers.rank().barrier();
    const Stopwatch watch;
    way.run(data.input.data(), data.output.data(), count, ReduceOp::sum, stream, way.name);
    peers.synchronize(stream);
    return until_the_last(peers.rank(), watch);
}

double all_reduce_seconds(Peers& peers, const AllReduceWay<float>& way, AllReduceData& data,
                          std::size_t count, int rounds) {
    constexpr int warm_up = 2;
    Stream stream;
    std::vector<Event> marks(static_cast<std::size_t>(warm_up + rounds + 1));
    peers.rank().barrier();
    for (Event& mark : marks) {
        mark.record(stream);
        if (&mark != &marks.back())
            way.run(data.input.data(), data.output.data(), count, ReduceOp::sum, stream, way.name);
    }
    peers.synchronize(stream);
    std::vector<double> seconds;
    for (std::size_t i = warm_up; i + 1 < marks.size(); i++)
        seconds.push_back(marks[i + 1].seconds_since(marks[i]));
    return median(seconds);
}

double memory_limit_seconds(Peers& peers, AllReduceData& data, std::size_t count, int rounds) {
    Stream stream;
    double seconds = 0;
    for (int batch = 0; batch < 2; batch++) {  // the first to warm up
        peers.rank().barrier();
        const Stopwatch watch;
        for (int i = 0; i < rounds; i++)
            launch(stream, grid_for(count), add_to_array, data.output.data(), data.input.data(),
                   count);
        peers.synchronize(stream);
        // Ranks that share a core take turns: the last one has waited for all.
        seconds = until_the_last(peers.rank(), watch) / rounds;
    }
    return seconds * 2 / 3;
}

std::vector<std::string> hashes_of_one(Peers& peers, const AllReduceWay<float>& way,
                                       AllReduceData& data, std::size_t count) {
    Stream stream;
    launch(stream, grid_for(count), fill_with_thirds, data.input.data(), count,
           peers.rank().rank());
    way.run(data.input.data(), data.output.data(), count, ReduceOp::sum, stream, way.name);
    peers.synchronize(stream);
    std::vector<float> host = data.output.to_host();
    host.resize(count);
    std::uint64_t hash = 14'695'981'039'346'656'037u;  // FNV-1a, by words
    for (const float value : host)
        hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 1'099'511'628'211u;
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
    return peers.rank().all_gather(text);
}

double bus_bandwidth(int ranks, std::size_t bytes, double seconds) {
    return ranks == 1 ? NAN : direct_seconds({0, 1}, ranks, bytes) / seconds;
}

}  // namespace ddp
