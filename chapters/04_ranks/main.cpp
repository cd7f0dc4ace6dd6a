// Chapter 04: who am I, and who are the others? Two ranks talk, two wait for each other, two share
// a network.
#include <algorithm>
#include <chrono>
#include <iostream>

#include "04_ranks/point_to_point.hpp"
#include "04_ranks/stage_report.hpp"
#include "04_ranks/world.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

struct RanksOptions {
    int rounds = 50;
};

// Everyone tells everyone; rank 0 prints.
void show_who_is_who(Rank& rank) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();  // one clock for a host
    const std::vector<std::string> times = rank.all_gather(std::to_string(now.count()));
    const std::vector<std::string> devices = rank.all_gather(std::to_string(rank.select_device()));
    if (rank.rank() != 0)
        return;
    const Job& job = rank.job();
    Table table("Who is who (started by: " + job.started_by + ")",
                {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "host", "process",
                 "device", "came"});
    for (std::size_t r = 0; r < times.size(); r++) {
        const Member& member = job.members[r];
        const auto came = std::ranges::count_if(times, [&](const std::string& time) {
            return std::stoll(time) <= std::stoll(times[r]);
        });
        table.row({std::to_string(r), std::to_string(rank.world_size()),
                   std::to_string(member.local_rank), std::to_string(member.local_world_size),
                   member.host, std::to_string(member.process), devices[r], std::to_string(came)});
    }
    table.note("Start it again: the processes are others, and they come in another order.");
    std::cout << table << "\n";
}

// Ranks 0 and 1 talk.
void show_ping_pong(Rank& rank, const RanksOptions& mine, const CommonOptions& common) {
    rank.select_device();
    Peers peers(rank, 20 << 20);
    std::vector<MessageTime> times;
    const std::size_t largest = std::size_t{common.quick ? 1u : 16u} << 20;
    for (std::size_t bytes = 4; bytes <= largest; bytes *= 4)
        times.push_back(ping_pong(peers, bytes, common.quick ? 10 : mine.rounds));
    if (rank.rank() != 0)
        return;
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

// Each waits until the other takes what it sends.
void send_to_each_other(Rank& rank) {
    Peers peers(rank, 1 << 16, 1.0);
    Stream stream;
    PoolBuffer<float> data = peers.allocate<float>(1000);
    if (rank.rank() < 2) {
        peers.send(data.data(), data.size(), 1 - rank.rank(), stream, "mine");
        peers.receive(data.data(), data.size(), 1 - rank.rank(), stream, "yours");
    }
    peers.synchronize(stream);
    rank.barrier();
}

int run(int argc, char** argv) {
    RanksOptions mine;
    Options options("ranks", "Who am I, and who are the others? Ranks, and messages between them.");
    options.add_int("--rounds", mine.rounds, {1, 100'000}, "ping-pongs of each size");
    options.refuse({"--seed", "--data", "--trace"}, "nothing here is random, read or timed so");
    options.example("--ranks 2", "two threads");
    options.example("--processes 4 --quick", "four processes, by our own launcher");
    options.example("--ranks 2 --link 100MB/s,1ms", "over a simulated link");
    const CommonOptions common = options.parse(argc, argv);
    if (const std::optional<int> status = launch_processes(common, argv))
        return *status;
    World world(common);
    world.run(show_who_is_who);
    if (world.world_size() == 1) {
        std::cout << "One rank has nobody to talk to: try --ranks 2.\n";
        return 0;
    }
    if (world.job().members[0].host != world.job().members[1].host) {
        if (world.has_rank_0())
            std::cout << "Ranks 0 and 1 are on two hosts: kernels do not reach so far.\n";
        return 0;
    }
    world.run([&](Rank& rank) { show_ping_pong(rank, mine, common); });
    try {
        world.run(send_to_each_other);
        throw std::logic_error("two sends against each other went through");
    } catch (const RunFailed& failure) {  // shown on purpose
        if (world.has_rank_0())
            std::cout << "Two ranks send to each other, and neither receives:\n    "
                      << failure.what() << "\n\n";
    }
    world.run([&](Rank& rank) { show_model_parallelism(rank, common, common.quick ? 3 : 15); });
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] { return run(argc, argv); });
}
