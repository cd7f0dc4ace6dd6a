#include "15_overlap/show/demos.hpp"

#include "15_overlap/show/accumulation.hpp"
#include "15_overlap/show/out_of_order.hpp"

namespace ddp {

void show_demos(World& world, const LabelledImages& images, const CommonOptions& common) {
    const Accumulation groups = common.quick ? Accumulation{25, 10, 4} : Accumulation();
    // A quick training is over before step 10: PowerSGD begins as early as it can.
    const HookTraining hooks = common.quick ? HookTraining{5, 2} : HookTraining();
    world.run([&](Rank& rank) {
        rank.select_device();
        show_short_numbers(rank);
        show_hooks(rank, images, hooks, common.seed, common.csv);
        show_accumulation(rank, images, groups, common.seed);
    });
    if (world.world_size() > 1)
        show_sending_orders(world);
}

}  // namespace ddp
