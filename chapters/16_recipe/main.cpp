// Chapter 16: what else does every script do? Clipping, dropout, 16-bit products and a scaled loss
// on several ranks, done right and done wrong.
#include "03_network/models.hpp"
#include "05_ranks/world.hpp"
#include "16_recipe/show/recipe_report.hpp"
#include "common/report/options.hpp"

namespace {

using namespace ddp;

int run(World& world, const CommonOptions& common) {
    FashionMnist data;
    world.prepare([&] { data = load_data(common); });
    world.run([&](Rank& rank) {
        rank.select_device();
        show_recipe(rank, data.train, common.quick ? 3 : 40, common.seed);
    });
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    Options options("recipe",
                    "What else does every script do? Clipping, dropout, 16-bit products.");
    options.refuse({"--trace"}, "the timeline of a step is in chapter 15");
    options.example("--ranks 2", "two ranks beside one device");
    options.example("--processes 4", "ranks that are processes");
    return run_ranks(argc, argv, options, run);
}
