// How does data get from one device to another? Two ranks exchange messages of all
// sizes, two ranks wait for each other, and two ranks share a network.
#include <iostream>

#include "05_ranks/world.hpp"
#include "06_messages/litmus.hpp"
#include "06_messages/point_to_point.hpp"
#include "06_messages/show/stage_report.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

struct MessagesOptions {
    int rounds = 50;
};

// Prints the measured times and the fitted line; writes both to --csv.
void print_costs(const std::vector<MessageTime>& times, const CommonOptions& common) {
    const CostModel model = fit_cost(times);
    Table table("A message from rank 0 to rank 1: half of a ping-pong",
                {"bytes", "measured", "alpha + bytes * beta", "bandwidth"});
    CsvWriter file(common.csv, {"bytes", "seconds", "model_seconds", "bytes_per_second"});
    for (const MessageTime& time : times) {
        const double bandwidth = static_cast<double>(time.bytes) / time.seconds;
        table.row({format_bytes(static_cast<double>(time.bytes)), format_seconds(time.seconds),
                   format_seconds(model.seconds(time.bytes)), format_bandwidth(bandwidth)});
        file.row({time.bytes, time.seconds, model.seconds(time.bytes), bandwidth});
    }
    table.note("alpha = " + format_seconds(model.alpha_s) +
               ", 1 / beta = " + format_bandwidth(1 / model.beta_s_per_byte));
    if (common.link)
        table.note("The link is simulated: " + format_bandwidth(common.link->bytes_per_second) +
                   " with a latency of " + format_seconds(common.link->latency_s) + ".");
    std::cout << table << "\n";
}

// Measures messages of 4 bytes, 16 bytes, ... between ranks 0 and 1.
void show_ping_pong(Rank& rank, const MessagesOptions& options, const CommonOptions& common) {
    rank.select_device();
    Peers peers(rank, 20 << 20);
    std::vector<MessageTime> times;
    const std::size_t largest = std::size_t{common.quick ? 1u : 16u} << 20;
    for (std::size_t bytes = 4; bytes <= largest; bytes *= 4)
        times.push_back(ping_pong(peers, bytes, options.rounds));
    if (rank.rank() == 0)
        print_costs(times, common);
}

// A deadlock: each send ends when the other rank receives, and neither gets as far as that.
void send_to_each_other(Rank& rank) {
    Peers peers(rank, 1 << 16, 1.0);
    Stream stream;
    ArenaBuffer<float> data = peers.allocate<float>(1000);
    rank.barrier();
    if (rank.rank() < 2) {
        peers.send(data.data(), data.size(), 1 - rank.rank(), stream, "mine");
        peers.receive(data.data(), data.size(), 1 - rank.rank(), stream, "yours");
    }
    peers.synchronize(stream);
}

void show_deadlock(World& world) {
    std::string outcome = "both messages have arrived";  // once a reader has mended it
    try {
        world.run(send_to_each_other);
    } catch (const RunFailed& failure) {  // shown on purpose
        outcome = failure.what();
    }
    if (world.has_rank_0())
        std::cout << "Two ranks send to each other first, and receive afterwards:\n    " << outcome
                  << "\n\n";
}

int run(World& world, const MessagesOptions& options, const CommonOptions& common) {
    if (world.world_size() == 1) {
        std::cout << "A single rank has no other to send to: try --ranks 2.\n";
        return 0;
    }
    if (world.job().has_several_nodes()) {
        if (world.has_rank_0())
            std::cout << "These ranks are on several nodes, and a kernel reaches the memory of one "
                         "node only.\n";
        return 0;
    }
    world.run([&](Rank& rank) { show_ping_pong(rank, options, common); });
    if (world.has_rank_0())
        show_litmus();
    show_deadlock(world);
    world.run([&](Rank& rank) { show_model_parallelism(rank, common, common.quick ? 3 : 15); });
    world.run(show_large_network);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    MessagesOptions options;
    Options parser("messages", "How does data get from one device to another?");
    parser.add_int("--rounds", options.rounds, {1, 100'000}, "ping-pongs of each size");
    parser.with_quick("--rounds", [&] { options.rounds = 10; });
    parser.refuse({"--seed", "--data", "--trace"}, "nothing here is random, read or timed so");
    parser.example("--ranks 2", "two threads");
    parser.example("--processes 2 --quick", "two processes, by our own launcher");
    parser.example("--ranks 2 --link 100MB/s,1ms", "over a simulated link");
    return run_ranks(argc, argv, parser, [&](World& world, const CommonOptions& common) {
        return run(world, options, common);
    });
}
