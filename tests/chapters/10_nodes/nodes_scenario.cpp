// A program with ranks on several nodes, or on one, for the tests of nodes.
#include <iostream>

#include "10_nodes/make_communicator.hpp"
#include "10_nodes/placement.hpp"
#include "common/report/bench.hpp"
#include "common/report/stats.hpp"
#include "tests/chapters/09_all_reduce/all_calls.hpp"
#include "tests/chapters/support/scenarios.hpp"

namespace {

using namespace ddp;

AllReduceOrder asked_order;  // by the command line

// Prints one line for each operation, with its bits on every rank: the same lines for every
// launcher.
void show_calls(Rank& rank, const std::vector<std::size_t>& counts, std::size_t large) {
    const auto communicator = make_communicator(
        "native", rank, ddp::test::arena_bytes_for(rank.world_size(), counts, large),
        {.order = asked_order});
    ddp::test::OrderOfSums order = ddp::test::order_on_one_node(rank.world_size());
    const Placement placement =
        placement_of(communicator->group(), rank.job(), rank.rank(), asked_order.shape);
    order.ring = placement.by_node;
    order.local = uses_two_levels(placement, asked_order.levels) ? placement.sizes[0] : 1;
    for (const auto& result : ddp::test::make_all_calls(*communicator, counts, large, order)) {
        std::string line = result.call + ":";
        for (const std::string& bits : rank.all_gather(result.bits))
            line += " " + bits;
        for (const std::string& wrong : rank.all_gather(std::to_string(result.wrong)))
            line += wrong == "0" ? "" : " " + wrong + " WRONG";
        if (rank.rank() == 0)
            std::cout << line << std::endl;
    }
}

void show_all_calls(Rank& rank) {
    show_calls(rank, {0, 1, 3, 31, 8191}, 300'007);
}
void show_few_calls(Rank& rank) {
    show_calls(rank, {3, 997}, 8191);
}

// Prints bytes and seconds for each size: the median of the slowest rank's times.
void time_all_reduce(Rank& rank, int max_mebibytes) {
    const std::size_t most = static_cast<std::size_t>(max_mebibytes) << 18;
    const auto communicator =
        make_communicator("native", rank, most * sizeof(float), {.order = asked_order});
    ArenaBuffer<float> data = communicator->allocate<float>(most);
    data.copy_from(std::vector<float>(most, 1.0f));
    Stream stream;
    for (std::size_t count = 1 << 10; count <= most; count *= 4) {
        std::vector<double> all;
        for (int round = 0; round < 8; round++) {
            rank.barrier();
            const Stopwatch watch;
            communicator->all_reduce(data.data(), data.data(), count, ReduceOp::average, stream);
            communicator->synchronize(stream);
            const double slowest = rank.max_over_ranks(watch.seconds());
            if (round > 0)
                all.push_back(slowest);
        }
        if (rank.rank() == 0)
            std::cout << count * sizeof(float) << " " << median(all) << std::endl;
    }
}

// All ranks reduce several times, until rank `victim` does something else.
void go_wrong(Rank& rank, const std::string& what, int victim) {
    const auto communicator = make_communicator("native", rank, 1 << 20, {.order = asked_order});
    ArenaBuffer<float> data = communicator->allocate<float>(100'000);
    Stream stream;
    const auto all_reduce = [&](std::size_t count) {
        communicator->all_reduce(data.data(), data.data(), count, ReduceOp::sum, stream, "weights");
        communicator->synchronize(stream);
    };
    for (int i = 0; i < 5; i++)
        all_reduce(data.size());
    if (rank.rank() == victim) {
        if (!ddp::test::misbehave(rank, what))
            return;
        if (what == "size")
            return all_reduce(1000);
        if (what == "call") {
            communicator->broadcast(data.data(), data.size(), 0, stream, "weights");
            return communicator->synchronize(stream);
        }
    }
    all_reduce(data.size());
}

}  // namespace

int main(int argc, char** argv) {
    ddp::test::ScenarioOptions asked{"calls"};
    int mebibytes = 16;
    Options parser("nodes_scenario", "Calls and failures for the tests of several nodes.");
    asked.add_to(parser);
    asked_order.add_to(parser);
    parser.add_int("--mebibytes", mebibytes, {1, 1024}, "the largest size that is timed");
    const auto first = [&](Rank& rank) {
        if (asked.what == "calls")
            show_all_calls(rank);
        else if (asked.what == "few calls")
            show_few_calls(rank);
        else if (asked.what == "time")
            time_all_reduce(rank, mebibytes);
        else
            go_wrong(rank, asked.what, asked.victim);
    };
    return ddp::test::scenario_main(argc, argv, parser, asked, [&] {
        return ddp::test::ScenarioRuns{.first = first, .after_failure = show_few_calls};
    });
}
