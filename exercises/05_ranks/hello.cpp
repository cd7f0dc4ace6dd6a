#include <cstdio>

#include "05_ranks/world.hpp"

int main(int argc, char** argv) {
    ddp::Options parser("hello", "Every rank says hello.");
    return ddp::run_ranks(argc, argv, parser, [](ddp::World& world, const ddp::CommonOptions&) {
        world.run([](ddp::Rank& rank) {
            std::printf("hello from rank %d of %d\n", rank.rank(), rank.world_size());
        });
        return 0;
    });
}
