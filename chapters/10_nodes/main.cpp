// And across machines? An all-reduce between nodes, round one ring of all ranks and on
// two levels: which bits it gives, what it puts on the network, and how long it takes.
#include <iostream>

#include "05_ranks/world.hpp"
#include "10_nodes/placement.hpp"
#include "10_nodes/show/order_report.hpp"
#include "common/report/csv.hpp"

namespace {

using namespace ddp;

struct NodesOptions {
    int mebibytes = 4;
    int rounds = 5;
    AllReduceOrder order;
};

// Returns the nodes to simulate: those of --shape, or, if nobody has asked for anything and the job
// is on one machine, two with half of the ranks each.
std::optional<NodeShape> shape_of(const Job& job, const AllReduceOrder& order) {
    if (order.shape || job.has_several_nodes() || job.world_size() % 2 != 0)
        return order.shape;
    return NodeShape{2, job.world_size() / 2};
}

std::vector<std::size_t> sizes_up_to(std::size_t most, std::size_t factor) {
    std::vector<std::size_t> sizes;
    for (std::size_t bytes = 4 << 10; bytes < most; bytes *= factor)
        sizes.push_back(bytes);
    sizes.push_back(most);
    return sizes;
}

// Measures both orders on the ranks of this job, and prints the results.
void compare_orders(Rank& rank, const NodesOptions& options, CsvWriter& file) {
    const std::optional<NodeShape> shape = shape_of(rank.job(), options.order);
    const Placement placement =
        placement_of(Group::all(rank.job()), rank.job(), rank.rank(), shape);
    const auto sizes = sizes_up_to(static_cast<std::size_t>(options.mebibytes) << 20, 16);
    const auto measurements = measure_orders(rank, sizes, shape, options.rounds);
    if (rank.rank() != 0)
        return;
    report_orders(placement.text(), measurements, file);
    if (!placement.is_even())
        std::cout << "Two levels need the same number of ranks on every node: here all sums go "
                     "round one ring.\n";
    std::cout << "\n";
}

int run(World& world, const CommonOptions& common, const NodesOptions& options) {
    options.order.require(world.job());
    if (world.world_size() == 1) {
        std::cout << "A sum over nodes needs two or more ranks: try --shape 2x2.\n";
        return 0;
    }
    const bool writes = world.has_rank_0();
    CsvWriter orders(writes ? common.csv : "", order_columns());
    world.run([&](Rank& rank) {
        rank.select_device();
        compare_orders(rank, options, orders);
    });
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    NodesOptions options;
    Options parser("nodes", "And across machines? An all-reduce between nodes.");
    options.order.add_to(parser);
    parser.add_int("--mebibytes", options.mebibytes, {1, 1024}, "the largest array");
    parser.add_int("--rounds", options.rounds, {1, 1000},
                   "all-reduces of each size that are timed");
    parser.with_quick("--rounds", [&] { options.rounds = 2; });
    parser.refuse({"--levels"}, "the program shows both");
    parser.refuse({"--seed", "--data", "--trace"}, "nothing here is drawn, read or recorded");
    parser.refuse({"--link"},
                  "it simulates a link within a node: ./book cluster up makes nodes with links");
    parser.example("--shape 4x2", "eight ranks, as four nodes of two");
    parser.example("--processes 4 --shape 2x2 --csv orders.csv",
                   "processes, and what they measured");
    return run_ranks(argc, argv, parser, [&](World& world, const CommonOptions& common) {
        return run(world, common, options);
    });
}
