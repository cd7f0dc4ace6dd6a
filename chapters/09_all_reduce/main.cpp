// And on every rank at once? The ring, step by step; six ways to the same sum, over a link; and
// which of them give the same bits.
#include <iostream>

#include "05_ranks/world.hpp"
#include "09_all_reduce/show/chunk_report.hpp"
#include "09_all_reduce/show/reports.hpp"

namespace {

using namespace ddp;

// Who holds what in the ring, after every step. Without recordings, rank 0 is in another process.
void show_chunks(const std::vector<Recording>& recordings, const CommonOptions& common,
                 bool step_by_step) {
    if (recordings.empty())
        return;
    write_chunks(recordings, common.csv);
    write_ports(common.csv);
    const std::vector<Step>& steps = recordings[0].steps;
    step_by_step ? show_step_by_step(steps) : print_chunks(steps);
}

int run(World& world, const CommonOptions& common, bool step_by_step) {
    const bool is_small = world.world_size() <= max_ranks_in_a_picture;
    if (world.world_size() == 1) {
        std::cout << "A sum over ranks takes two or more of them: try --ranks 4.\n";
        return 0;
    }
    if (world.job().has_several_nodes())
        throw OptionError(
            "These ranks are on several nodes, and a kernel reaches the memory of one only: "
            "./book run 10 sums between nodes.");
    if (step_by_step && !is_small)
        throw OptionError("--show draws 2 to " + std::to_string(max_ranks_in_a_picture) +
                          " ranks of one node.");
    if (is_small)
        show_chunks(record_all_reduces(world, link_of(common)), common, step_by_step);
    if (step_by_step)
        return 0;
    world.run([&](Rank& rank) {
        rank.select_device();
        show_link(rank, common);
        show_bits(rank);
    });
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    bool step_by_step = false;
    Options parser("all_reduce", "And on every rank at once? Six ways to the same sum.");
    parser.add_flag("--show", step_by_step, "only the ring of 2 to 8 ranks, step by step");
    parser.refuse({"--seed", "--data", "--trace"}, "nothing here is random, read or timed so");
    parser.example("--show", "the ring, step by step: who holds what, and the ports");
    parser.example("--ranks 8 --link 100MB/s,1ms", "eight ranks, over a longer link");
    parser.example("--processes 2 --csv all_reduce.csv", "two processes, and what they measured");
    return run_ranks(argc, argv, parser, [&](World& world, const CommonOptions& common) {
        return run(world, common, step_by_step);
    });
}
