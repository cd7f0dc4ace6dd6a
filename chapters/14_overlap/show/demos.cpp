#include "14_overlap/show/demos.hpp"

#include "14_overlap/show/accumulation.hpp"
#include "14_overlap/show/out_of_order.hpp"
#include "14_overlap/show/recipe_report.hpp"

namespace ddp {

void show_demos(World& world, const LabelledImages& images, const CommonOptions& common) {
    const Accumulation groups = common.quick ? Accumulation{25, 10, 4} : Accumulation();
    world.run([&](Rank& rank) {
        rank.select_device();
        show_short_numbers(rank);
        show_hooks(rank, images, common.quick ? 5 : 60, common.seed, common.csv);
        show_accumulation(rank, images, groups, common.seed);
    });
    world.run([&](Rank& rank) {
        rank.select_device();
        show_recipe(rank, images, common.quick ? 3 : 40, common.seed);
    });
    if (world.world_size() > 1)
        show_sending_orders(world);
}

}  // namespace ddp
