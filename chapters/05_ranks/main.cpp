// Who am I, and who are the others? Every rank shows what it is; then one of them
// fails, and the next run starts afresh.
#include <algorithm>
#include <chrono>
#include <iostream>

#include "05_ranks/world.hpp"
#include "common/report/table.hpp"

namespace {

using namespace ddp;

// Gathers each rank's description of itself. Rank 0 prints them.
void show_who_is_who(Rank& rank) {
    const auto now = std::chrono::steady_clock::now();  // the same clock for all ranks of a node
    const auto times = rank.all_gather(now);
    const std::vector<int> devices = rank.all_gather(rank.select_device());
    if (rank.rank() != 0)
        return;
    const Job& job = rank.job();
    Table table("Who is who (started by: " + job.started_by + ")",
                {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "node", "process",
                 "device", "came"});
    for (std::size_t r = 0; r < times.size(); r++) {
        const Member& member = job.members[r];
        const auto came =
            std::ranges::count_if(times, [&](const auto& time) { return time <= times[r]; });
        table.row({std::to_string(r), std::to_string(rank.world_size()),
                   std::to_string(member.local_rank), std::to_string(member.local_world_size),
                   member.node, std::to_string(member.process), std::to_string(devices[r]),
                   std::to_string(came)});
    }
    table.note("Start it again: the process numbers change, and often the order as well.");
    std::cout << table << "\n";
}

// The last rank throws while all others wait for it in a barrier.
void fail_on_the_last_rank(Rank& rank) {
    if (rank.rank() == rank.world_size() - 1)
        throw std::runtime_error("it has thrown an exception, to show what happens to the others");
    rank.barrier();
}

int run(World& world) {
    world.run(show_who_is_who);
    try {
        world.run(fail_on_the_last_rank);
        throw std::logic_error("a run in which one rank throws went through");
    } catch (const RunFailed& failure) {  // shown on purpose
        if (world.has_rank_0())
            std::cout << "One rank fails, and no other waits for it:\n    " << failure.what()
                      << "\n\n";
    }
    world.run([](Rank& rank) { rank.barrier(); });
    if (world.has_rank_0())
        std::cout << "The next run has begun anew, and all " << world.world_size()
                  << " ranks have met.\n";
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    Options parser("ranks", "Who am I, and who are the others?");
    parser.refuse({"--seed", "--data", "--trace", "--link"},
                  "this chapter computes nothing: its ranks only find each other");
    parser.example("--ranks 2", "two threads");
    parser.example("--processes 4", "four processes, by our own launcher");
    return run_ranks(argc, argv, parser,
                     [](World& world, const CommonOptions&) { return run(world); });
}
