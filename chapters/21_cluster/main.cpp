// What will a thousand ranks do? A simulator: what a training would do on a cluster that is not
// there.
#include "05_ranks/world.hpp"
#include "21_cluster/show/simulate.hpp"

int main(int argc, char** argv) {
    using namespace ddp;
    SimulatorOptions options;
    Options parser("cluster", "What will a thousand ranks do? A simulated cluster.");
    add_simulator_options(parser, options);
    parser.refuse({"--seed", "--data", "--trace"}, "nothing here is drawn, read or recorded");
    parser.refuse({"--link"}, "the simulator has links of its own: --inside and --between");
    parser.example("--per-node 4 --ports 1 --inside 5GB/s,5us --between 1Gbit/s,50us",
                   "a class's cluster");
    parser.example("--step out/overlap_timeline.csv", "a training of your own, on that cluster");
    return run_ranks(argc, argv, parser, [&](World& world, const CommonOptions& common) {
        const Simulation simulation = simulation_of(options, common);  // or refuses now
        if (world.has_rank_0())
            simulate(simulation, common);
        return 0;
    });
}
