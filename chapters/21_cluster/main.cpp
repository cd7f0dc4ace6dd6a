// And across machines? First an all-reduce between hosts, round one ring of all ranks
// and on two levels: which bits it gives, what it puts on the network, and how long it takes. Then
// a simulator: what a training would do on a cluster that is not there.
#include <iostream>

#include "05_ranks/world.hpp"
#include "09_all_reduce/hosts/placement.hpp"
#include "21_cluster/show/order_report.hpp"
#include "21_cluster/show/simulate.hpp"

namespace {

using namespace ddp;

struct ClusterOptions {
    int mebibytes = 4;
    int rounds = 5;
    bool simulate_only = false;
    SimulatorOptions simulated;
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

// Measures both orders on the ranks of this job, and prints what came of it.
void compare_orders(World& world, const CommonOptions& common, const ClusterOptions& mine) {
    if (world.world_size() == 1) {
        std::cout << "A sum over hosts takes two or more ranks: try --shape 2x2.\n\n";
        return;
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
        std::cout << "\n";
    });
}

}  // namespace

int main(int argc, char** argv) {
    ClusterOptions mine;
    Options options("cluster",
                    "And across machines? An all-reduce between hosts, and a simulated cluster.");
    options.take_shape();
    options.add_int("--mebibytes", mine.mebibytes, {1, 1024}, "the largest array");
    options.add_int("--rounds", mine.rounds, {1, 1000}, "all-reduces of each size that are timed");
    options.refuse({"--levels"}, "the program shows both");
    options.add_flag("--simulate-only", mine.simulate_only, "only the simulator");
    add_simulator_options(options, mine.simulated);
    options.refuse({"--seed", "--data", "--trace"}, "nothing here is drawn, read or recorded");
    options.refuse({"--link"}, "the simulator has links of its own: --inside and --between");
    options.example("--shape 4x2", "eight ranks, as four hosts of two");
    options.example("--processes 4 --shape 2x2 --csv orders.csv",
                    "processes, and what they measured");
    options.example("--per-host 4 --ports 1 --inside 5GB/s,5us --between 1Gbit/s,50us",
                    "a class's cluster, simulated");
    options.example("--step out/overlap_timeline.csv", "a training of your own, on that cluster");
    return run_ranks(argc, argv, options, [&](World& world, const CommonOptions& common) {
        const Simulation simulation = simulation_of(mine.simulated, common);  // or refuses now
        if (!mine.simulate_only)
            compare_orders(world, common, mine);
        if (world.has_rank_0())
            simulate(simulation, common);
        return 0;
    });
}
