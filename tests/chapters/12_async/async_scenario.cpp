// A program with a server and workers, of which one does what the tests ask for.
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "05_ranks/world.hpp"
#include "10_data_parallel/replica.hpp"
#include "12_async/server.hpp"

namespace {

using namespace ddp;

void act(const std::string& what) {
    if (what == "throw")
        throw std::runtime_error("broken on purpose");
    if (what == "kill")
        raise(SIGKILL);
}

int run(int argc, char** argv) {
    std::string what = "nothing";
    int who = 1, bound = -1;
    Options options("async_scenario", "What the tests of a parameter server ask for.");
    options.add_text("--what", what, "what goes wrong");
    options.add_int("--who", who, {1, 64}, "which rank does it");
    options.add_int("--bound", bound, {-1, 64}, "steps that a worker may be ahead; -1: any");
    const CommonOptions common = options.parse(argc, argv);
    if (const std::optional<int> status = launch_processes(common, argv))
        return *status;
    World world(common);
    world.run([&](Rank& rank) {
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
                if (rank.rank() == who && step == 2)
                    act(what);
                return loss;
            });
        rank.barrier();
        if (rank.rank() == 0)
            std::cout << "w = " << buffers.values.to_host()[99] << std::endl;
    });
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] { return run(argc, argv); });
}
