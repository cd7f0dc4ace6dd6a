// And on every rank at once? Six ways to the same sum, over a link and in memory, and
// which of them give the same bits.
#include <algorithm>
#include <iostream>
#include <map>

#include "05_ranks/world.hpp"
#include "09_all_reduce/communicator.hpp"
#include "09_all_reduce/show/chunk_report.hpp"
#include "09_all_reduce/show/reports.hpp"
#include "09_all_reduce/show/step_by_step.hpp"
#include "09_all_reduce/show/times.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

// Measures all algorithms on this machine, beside the limit of its memory.
std::vector<AllReduceMeasurement> show_machine(Rank& rank, const CommonOptions& common,
                                               CsvWriter& file) {
    std::vector<std::size_t> sizes;
    for (std::size_t bytes = 4 << 10; bytes <= (common.quick ? 1u : 16u) << 20; bytes *= 4)
        sizes.push_back(bytes);
    std::vector<AllReduceMeasurement> measurements =
        compare_all_reduces(rank, sizes, common.quick ? 1 : 3, "all");
    if (rank.rank() == 0)
        report_machine(rank.world_size(), "of this machine", limit_text(), measurements, file);
    return measurements;
}

// Rounded sums depend on their order, so some ways differ from others; no rank differs from
// another. A Communicator that takes one of the ways gives its bits.
void show_bits(Rank& rank) {
    constexpr std::size_t count = 10'007;
    Table table("The bits of a sum of " + format_count(count) + " floats that were rounded",
                {"algorithm", "bits on rank 0", "on the others", "the same as"});
    std::map<std::string, std::string> first_with;
    const auto add = [&](const std::string& name, const std::vector<std::string>& hashes) {
        if (std::ranges::count(hashes, hashes[0]) != rank.world_size())
            throw std::runtime_error(name + ": the ranks have different bits");
        const auto [first, is_new] = first_with.emplace(hashes[0], name);
        table.row({name, hashes[0], "the same", is_new ? "" : first->second});
    };
    Peers peers(rank, 1 << 20);
    AllReduceData data(peers, count);
    for (const AllReduceAlgorithm<float>& algorithm : all_reduce_algorithms<float>(peers, count))
        add(algorithm.name, hashes_of_one(peers, algorithm, data, count));
    add("native", hashes_of(*make_native_communicator(rank, 1 << 20), count));
    table.note(
        "server: by rank. reduce+broadcast: neighbours, then pairs. The others: chunk c begins "
        "with rank c + 1 and goes round. Two numbers have one sum in any order. native: the "
        "Communicator.");
    if (rank.rank() == 0)
        std::cout << table;
}

// Who holds what in the ring, after every step. Without steps, rank 0 is in another process.
void show_chunks(const std::vector<Step>& steps, const CommonOptions& common, bool step_by_step) {
    if (steps.empty())
        return;
    write_chunks(steps, common.csv);
    write_ports(common.csv);
    step_by_step ? show_step_by_step(steps) : print_chunks(steps);
}

int run(World& world, const CommonOptions& common, bool step_by_step) {
    const bool is_small = world.world_size() <= most_ranks_in_a_picture;
    if (world.world_size() == 1) {
        std::cout << "A sum over ranks takes two or more of them: try --ranks 4.\n";
        return 0;
    }
    if (world.job().has_several_hosts())
        throw OptionError(
            "These ranks are on several hosts, and a kernel reaches the memory of one only: "
            "./book run 10 sums between hosts.");
    if (step_by_step && !is_small)
        throw OptionError("--show draws 2 to " + std::to_string(most_ranks_in_a_picture) +
                          " ranks of one host.");
    if (is_small)
        show_chunks(watch_ring(world), common, step_by_step);
    if (step_by_step)
        return 0;
    CsvWriter file(world.has_rank_0() ? common.csv : "", report_columns());
    world.run([&](Rank& rank) {
        rank.select_device();
        show_link(rank, common, file);
        std::vector<AllReduceMeasurement> measurements;
        if (!common.link)
            measurements = show_machine(rank, common, file);
        show_cross_overs(rank, common, measurements, file);
        show_bits(rank);
    });
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    bool step_by_step = false;
    Options options("all_reduce", "And on every rank at once? Six ways to the same sum.");
    options.add_flag("--show", step_by_step, "only the ring of 2 to 8 ranks, step by step");
    options.refuse({"--seed", "--data", "--trace"}, "nothing here is random, read or timed so");
    options.example("--show", "the ring, step by step: who holds what, and the ports");
    options.example("--ranks 8 --link 100MB/s,1ms", "eight ranks, on a simulated link only");
    options.example("--processes 2 --csv all_reduce.csv", "two processes, and what they measured");
    return run_ranks(argc, argv, options, [&](World& world, const CommonOptions& common) {
        return run(world, common, step_by_step);
    });
}
