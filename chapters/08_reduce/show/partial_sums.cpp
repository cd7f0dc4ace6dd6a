#include "08_reduce/show/partial_sums.hpp"

#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "07_broadcast/collective.hpp"
#include "07_broadcast/topology.hpp"
#include "08_reduce/tree_reduce.hpp"
#include "common/report/table.hpp"

namespace ddp {
namespace {

// A sum of ranks' numbers: rank r has 2^r, so bit r says that rank r's number is in the sum.
using RankSet = int;

std::string digits_of_ranks(RankSet ranks) {
    std::string digits;
    for (int r = 0; r < max_ranks_of_partial_sums; r++)
        if (ranks >> r & 1)
            digits += std::to_string(r);
    return digits;
}

// Reduces, and returns the sum that each rank has made. A rank between the leaves and the root
// leaves it in its staging area, a leaf has its own number only.
std::vector<RankSet> sums_of_all_ranks(Rank& rank) {
    Peers peers(rank, 1 << 20);
    Stream stream;
    ArenaBuffer<int> number = peers.allocate<int>(1), sum = peers.allocate<int>(1);
    number.copy_from(std::vector<int>{1 << rank.rank()});
    const std::byte* staging = Collectives::over(peers).staging() + Collectives::max_staged;
    tree_reduce(peers, static_cast<const int*>(number.data()), sum.data(), 1, ReduceOp::sum, 0,
                stream, "numbers");
    peers.synchronize(stream);
    const bool is_root = rank.rank() == 0;
    const bool is_leaf = tree_topology(rank.rank(), rank.world_size(), 0).children == 0;
    RankSet mine = 0;
    const void* place = is_root   ? static_cast<const void*>(sum.data())
                        : is_leaf ? static_cast<const void*>(number.data())
                                  : staging;
    copy_to_host(&mine, place, sizeof mine);
    return rank.all_gather(mine);
}

}  // namespace

void show_partial_sums(Rank& rank) {
    rank.select_device();
    const int ranks = rank.world_size();
    const std::vector<RankSet> sums = sums_of_all_ranks(rank);
    if (rank.rank() != 0)
        return;
    std::vector<std::string> header{"step"}, cells{"begin"};
    std::vector<RankSet> holds;
    for (int r = 0; r < ranks; r++) {
        header.push_back("rank " + std::to_string(r));
        holds.push_back(1 << r);
        cells.push_back(digits_of_ranks(holds.back()));
    }
    header.push_back("messages");
    cells.push_back("");
    Table table("Who holds what in the tree, on " + std::to_string(ranks) + " ranks", header);
    table.row(cells);
    int step = 1;
    for (int distance = 1; distance < ranks; distance *= 2, step++) {
        std::string messages;
        // In this step the odd ones of the groups of `distance` ranks send to their parents.
        for (int r = distance; r < ranks; r += 2 * distance) {
            const int parent = tree_topology(r, ranks, 0).parent;
            const auto from = static_cast<std::size_t>(r), to = static_cast<std::size_t>(parent);
            if (holds[from] != sums[from])
                throw std::runtime_error("rank " + std::to_string(r) + " has summed ranks " +
                                         digits_of_ranks(sums[from]) + " instead of " +
                                         digits_of_ranks(holds[from]));
            holds[to] |= holds[from];
            holds[from] = 0;
            messages +=
                (messages.empty() ? "" : "  ") + std::to_string(r) + "→" + std::to_string(parent);
        }
        cells = {std::to_string(step)};
        for (const RankSet held : holds)
            cells.push_back(held == 0 ? "." : digits_of_ranks(held));
        cells.push_back(messages);
        table.row(cells);
    }
    if (holds[0] != sums[0])
        throw std::runtime_error("the root has summed ranks " + digits_of_ranks(sums[0]));
    table.note("A digit for each rank whose number is in the sum. A dot: sent, and done.");
    std::cout << table << "\n";
}

}  // namespace ddp
