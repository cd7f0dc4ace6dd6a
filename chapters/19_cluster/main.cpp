// Chapter 19: and across machines? An all-reduce between hosts, round one ring of all ranks and on
// two levels: which bits it gives, what it puts on the network, and how long it takes.
#include <iostream>

#include "05_ranks/world.hpp"
#include "09_all_reduce/hosts/placement.hpp"
#include "19_cluster/show/order_report.hpp"

namespace {

using namespace ddp;

struct ClusterOptions {
    int mebibytes = 4;
    int rounds = 5;
};

// Returns the hosts to pretend: those of --shape, or, if nobody has asked for anything and the job
// is on one machine, two with half of the ranks each.
std::optional<HostShape> shape_of(const Job& job) {
    if (job.order.shape || job.has_several_hosts() || job.world_size() % 2 != 0)
        return job.order.shape;
    return HostShape{2, job.world_size() / 2};
}

std::vector<std::size_t> sizes_up_to(std::size_t most) {
    std::vector<std::size_t> sizes;
    for (std::size_t bytes = 4 << 10; bytes < most; bytes *= 16)
        sizes.push_back(bytes);
    sizes.push_back(most);
    return sizes;
}

int run(World& world, const CommonOptions& common, const ClusterOptions& mine) {
    if (world.world_size() == 1) {
        std::cout << "A sum over hosts takes two or more ranks: try --shape 2x2.\n";
        return 0;
    }
    CsvWriter file(world.has_rank_0() ? common.csv : "", order_columns());
    world.run([&](Rank& rank) {
        rank.select_device();
        const std::optional<HostShape> shape = shape_of(rank.job());
        const Placement placement =
            placement_of(Group::all(rank.job()), rank.job(), rank.rank(), shape);
        const auto measurements =
            measure_orders(rank, sizes_up_to(static_cast<std::size_t>(mine.mebibytes) << 20), shape,
                           common.quick ? 2 : mine.rounds);
        if (rank.rank() != 0)
            return;
        report_orders(placement.text(), measurements, file);
        if (!placement.is_even())
            std::cout << "Two levels take hosts with the same number of ranks: all sums go round "
                         "one ring here.\n";
    });
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    ClusterOptions mine;
    Options options("cluster", "And across machines? An all-reduce between hosts, in two orders.");
    options.take_shape();
    options.add_int("--mebibytes", mine.mebibytes, {1, 1024}, "the largest array");
    options.add_int("--rounds", mine.rounds, {1, 1000}, "all-reduces of each size that are timed");
    options.refuse({"--levels"}, "the program shows both");
    options.refuse({"--seed", "--data", "--trace", "--link"},
                   "nothing here is random, read or simulated");
    options.example("--shape 4x2", "eight ranks, as four hosts of two");
    options.example("--processes 4 --shape 2x2 --csv orders.csv",
                    "processes, and what they measured");
    return run_ranks(argc, argv, options, [&](World& world, const CommonOptions& common) {
        return run(world, common, mine);
    });
}
