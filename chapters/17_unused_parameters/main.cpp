// Why does it hang? Six failure cases: the error that each one gives, and its cure.
#include <iostream>

#include "17_unused_parameters/show/failure_cases.hpp"

namespace {

using namespace ddp;

int run(World& world, const CommonOptions& common) {
    if (world.world_size() == 1)
        std::cout << "A single rank waits for no other: only the cures are shown here. --ranks 3 "
                     "shows the failures that they cure.\n";
    Demo demo(world, common);
    for (const FailureCase failure : all_failure_cases)
        demo.show(failure);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    Options parser("unused_parameters",
                   "Why does it hang? Six failure cases, their errors and their cures.");
    parser.refuse({"--trace"}, "the timeline of a step is in 15_overlap");
    parser.refuse({"--data"}, "the pictures are drawn");
    parser.example("--ranks 3", "three ranks, of which the last one is different");
    return run_ranks(argc, argv, parser, run);
}
