#include "09_all_reduce/show/chunk_report.hpp"

#include <bit>
#include <iostream>
#include <string>

#include "09_all_reduce/cost.hpp"
#include "09_all_reduce/host_ring.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"

namespace ddp {
namespace {

constexpr std::size_t chunk_elements = 128 / sizeof(int);  // elements

// Returns the ranks in each chunk. A chunk that has not come yet is this rank's own, in its input.
Holdings holdings_of(const std::vector<int>& output, int rank) {
    Holdings holdings{};
    for (std::size_t i = 0; i < output.size(); i += chunk_elements)
        holdings[i / chunk_elements] =
            output[i] == 0 ? 1u << rank : static_cast<RankSet>(output[i]);
    return holdings;
}

// Returns a digit for each chunk: of how many ranks it is the sum.
std::string digits_of(const Holdings& holdings, std::size_t chunks) {
    std::string digits;
    for (std::size_t chunk = 0; chunk < chunks; chunk++)
        digits += std::to_string(std::popcount(holdings[chunk]));
    return digits;
}

std::vector<Step> watch_ring_as(Rank& rank) {
    rank.select_device();
    const std::size_t count = chunk_elements * static_cast<std::size_t>(rank.world_size());
    Peers peers(rank, 1 << 20);
    HostRing<int> ring(peers, count);
    ArenaBuffer<int> input = peers.allocate<int>(count), output = peers.allocate<int>(count);
    input.copy_from(std::vector<int>(count, 1 << rank.rank()));
    output.copy_from(std::vector<int>(count, 0));
    Stream stream;
    rank.barrier();
    std::vector<Step> steps;
    const auto look = [&] {
        peers.synchronize(stream);
        steps.push_back(rank.all_gather(holdings_of(output.to_host(), rank.rank())));
    };
    look();
    ring.all_reduce(input.data(), output.data(), count, ReduceOp::sum, stream, "chunks", look);
    peers.synchronize(stream);
    return steps;
}

}  // namespace

std::vector<Step> watch_ring(World& world) {
    std::vector<Step> steps;
    world.run([&](Rank& rank) {
        const std::vector<Step> watched = watch_ring_as(rank);
        if (rank.rank() == 0)
            steps = watched;
    });
    return steps;
}

int received_chunk(const Step& before, const Step& after, int rank) {
    const auto r = static_cast<std::size_t>(rank);
    for (std::size_t chunk = 0; chunk < after.size(); chunk++)
        if (before[r][chunk] != after[r][chunk])
            return static_cast<int>(chunk);
    return -1;
}

void print_chunks(const std::vector<Step>& steps) {
    const std::size_t ranks = steps[0].size();
    std::vector<std::string> header{"step"};
    for (std::size_t r = 0; r < ranks; r++)
        header.push_back("rank " + std::to_string(r));
    Table table("Who holds what in the ring: " + std::to_string(ranks) + " chunks on each of " +
                    std::to_string(ranks) + " ranks",
                header);
    for (std::size_t step = 0; step < steps.size(); step++) {
        const char* what = step == 0 ? "begin" : step < ranks ? " add" : " copy";
        std::vector<std::string> cells{step == 0 ? what : std::to_string(step) + what};
        for (const Holdings& holdings : steps[step])
            cells.push_back(digits_of(holdings, ranks));
        table.row(cells);
    }
    table.note("A digit for each chunk: of how many ranks it is the sum. " + std::to_string(ranks) +
               " is the whole sum.");
    std::cout << table << "\n";
}

void write_chunks(const std::vector<Step>& steps, const std::filesystem::path& csv) {
    CsvWriter file(beside(csv, "steps"), {"step", "rank", "chunk", "ranks", "received"});
    const auto ranks = static_cast<int>(steps[0].size());
    for (std::size_t step = 0; step < steps.size(); step++)
        for (int r = 0; r < ranks; r++) {
            const int came = step == 0 ? -1 : received_chunk(steps[step - 1], steps[step], r);
            const Holdings& holdings = steps[step][static_cast<std::size_t>(r)];
            for (int chunk = 0; chunk < ranks; chunk++)
                file.row({step, r, chunk, holdings[static_cast<std::size_t>(chunk)],
                          chunk == came ? 1 : 0});
        }
}

void write_ports(const std::filesystem::path& csv) {
    CsvWriter file(beside(csv, "ports"), {"ranks", "server", "reduce_broadcast", "ring"});
    const CostModel bytes_only{0, 1};  // with an array of one byte: arrays
    for (int ranks = 2; ranks <= 64; ranks++)
        file.row({ranks, parameter_server_seconds(bytes_only, ranks, 1),
                  reduce_broadcast_seconds(bytes_only, ranks, 1),
                  ring_seconds(bytes_only, ranks, 1)});
}

}  // namespace ddp
