#include "09_all_reduce/show/chunk_report.hpp"

#include <bit>
#include <iostream>
#include <string>
#include <vector>

#include "09_all_reduce/host_ring.hpp"
#include "common/report/table.hpp"

namespace ddp {
namespace {

constexpr std::size_t chunk_elements = 128 / sizeof(int);  // elements

// A digit for each chunk: of how many ranks it is the sum. A chunk that has not come yet is this
// rank's own part, in its input.
std::string digits_of(const std::vector<int>& output) {
    std::string digits;
    for (std::size_t i = 0; i < output.size(); i += chunk_elements)
        digits +=
            std::to_string(output[i] == 0 ? 1 : std::popcount(static_cast<unsigned>(output[i])));
    return digits;
}

// Returns the chunks of all ranks after each step, the beginning first.
std::vector<std::vector<std::string>> watch_ring(Rank& rank) {
    const std::size_t count = chunk_elements * static_cast<std::size_t>(rank.world_size());
    Peers peers(rank, 1 << 20);
    HostRing<int> ring(peers, count);
    ArenaBuffer<int> input = peers.allocate<int>(count), output = peers.allocate<int>(count);
    input.copy_from(std::vector<int>(count, 1 << rank.rank()));
    output.copy_from(std::vector<int>(count, 0));
    Stream stream;
    rank.barrier();
    std::vector<std::vector<std::string>> steps;
    const auto look = [&] {
        peers.synchronize(stream);
        steps.push_back(rank.all_gather(digits_of(output.to_host())));
    };
    look();
    ring.all_reduce(input.data(), output.data(), count, ReduceOp::sum, stream, "chunks", look);
    peers.synchronize(stream);
    return steps;
}

}  // namespace

void show_chunks(Rank& rank) {
    const int ranks = rank.world_size();
    const auto steps = watch_ring(rank);
    std::vector<std::string> header{"step"};
    for (int r = 0; r < ranks; r++)
        header.push_back("rank " + std::to_string(r));
    Table table("Who holds what in the ring: " + std::to_string(ranks) + " chunks on each of " +
                    std::to_string(ranks) + " ranks",
                header);
    for (std::size_t step = 0; step < steps.size(); step++) {
        const char* what = step == 0 ? "begin" : step < steps[0].size() ? " add" : " copy";
        std::vector<std::string> cells{step == 0 ? what : std::to_string(step) + what};
        cells.insert(cells.end(), steps[step].begin(), steps[step].end());
        table.row(cells);
    }
    table.note("A digit for each chunk: of how many ranks it is the sum. " + std::to_string(ranks) +
               " is the whole sum.");
    if (rank.rank() == 0)
        std::cout << table << "\n";
}

}  // namespace ddp
