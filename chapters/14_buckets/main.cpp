// Why 25 MB? Shows which gradients travel together, in the first iteration and in all
// later ones; how long that takes with buckets of every size; and which bits it gives.
#include <algorithm>
#include <iostream>
#include <optional>

#include "03_network/models.hpp"
#include "05_ranks/world.hpp"
#include "11_data_parallel/replica.hpp"
#include "14_buckets/flat_buffers.hpp"
#include "14_buckets/show/reports.hpp"
#include "common/report/csv.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

struct BucketsOptions {
    std::optional<double> cap;  // MiB
};

// Returns the gradients of an MLP, those of the last layer first.
GradientSizes gradients_of(Device& device, const std::vector<int>& widths) {
    Random random(1);
    GradientSizes sizes = gradient_sizes(make_mlp(device, random, widths)->parameters());
    std::ranges::reverse(sizes);
    return sizes;
}

// Shows how long the all-reduces take with buckets of every size, and which bits they give.
void show_sizes(World& world, const CommonOptions& common) {
    if (world.world_size() == 1 || world.job().has_several_nodes()) {
        if (world.has_rank_0())
            std::cout << "To send buckets, two or more ranks of one node are needed: try "
                         "--ranks 4.\n";
        return;
    }
    const std::vector<LinkSpeed> links =
        common.link ? std::vector{*common.link}
                    : std::vector<LinkSpeed>{{400e6, 2e-3}, {100e6, 500e-6}};
    std::vector<std::size_t> caps{0, 64 << 10, 256 << 10, 1 << 20, 4 << 20, unlimited_bucket};
    if (common.quick)
        caps = {0, 1 << 20, unlimited_bucket};
    world.run([&](Rank& rank) {
        rank.select_device();
        auto& device = make_run_scoped<Device>(rank);
        const std::vector<SweptModel> models{
            {"mlp", gradients_of(device, {784, 1024, 1024, 10})},
            {"64 layers of 128", gradients_of(device, std::vector<int>(65, 128))}};
        show_sweep(rank, models, links, caps, common.quick ? 1 : 3, common.csv);
        show_bits(rank, models[0], caps);
    });
}

int run(World& world, const CommonOptions& common, const BucketsOptions& options) {
    std::optional<std::size_t> cap;
    if (options.cap)
        cap = static_cast<std::size_t>(*options.cap * (1 << 20));
    if (world.has_rank_0())
        show_plans(cap, common.seed, beside(common.csv, "plan"));
    show_sizes(world, common);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    BucketsOptions options;
    Options parser("buckets", "Why 25 MB? Which gradients travel together, and how long it takes.");
    parser.add_double("--cap", options.cap, {0.001, 4096},
                      "MiB at which a bucket is closed (1 for the first, 25 for the others)");
    parser.refuse({"--data", "--trace"}, "nothing is read or traced here");
    parser.example("--cap 1", "small buckets: the first can be sent early");
    parser.example("--ranks 8 --link 1GB/s,200us", "over a link of your own");
    return run_ranks(argc, argv, parser, [&](World& world, const CommonOptions& common) {
        return run(world, common, options);
    });
}
