// A program with a server and workers. One worker does what the tests ask for.
#include <iostream>

#include "11_data_parallel/replica.hpp"
#include "13_async/server.hpp"
#include "tests/chapters/support/scenarios.hpp"

namespace {

using namespace ddp;

// Runs the server or a worker, with 60 gradients in all. Worker `asked.victim` fails in its third
// step.
void train(Rank& rank, const ddp::test::ScenarioOptions& asked, int bound) {
    auto& device = make_run_scoped<Device>(rank, std::size_t{1} << 20);
    Peers peers(rank, 1 << 16);
    MessageBuffers buffers(peers, device, 100);
    buffers.values.copy_from(std::vector<float>(100, 1));
    buffers.gradients.copy_from(std::vector<float>(100, 0.5));
    auto& loss = make_run_scoped<Tensor>(rank, device, Shape{1}, std::vector<float>{1});
    ServerOptions settings{rank.world_size() - 1, 60, false, {}};
    if (bound >= 0)
        settings.bound = bound;
    std::optional<Server> server;
    if (rank.rank() == 0)
        server.emplace(peers, device, buffers, 1, settings);
    rank.barrier();
    if (server)
        server->serve();
    else
        run_worker(peers, device, buffers, [&](int step) {
            if (rank.rank() == asked.victim && step == 2)
                ddp::test::misbehave(rank, asked.what);
            return loss;
        });
    rank.barrier();
    if (rank.rank() == 0)
        std::cout << "w = " << buffers.values.to_host()[99] << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
    ddp::test::ScenarioOptions asked{"nothing", 1};
    int bound = -1;
    Options parser("async_scenario", "What the tests of a parameter server ask for.");
    asked.add_to(parser);
    parser.add_int("--bound", bound, {-1, 64}, "steps that a worker may be ahead; -1: any");
    const auto first = [&](Rank& rank) { train(rank, asked, bound); };
    return ddp::test::scenario_main(argc, argv, parser, asked,
                                    [&] { return ddp::test::ScenarioRuns{.first = first}; });
}
