// How are gradients summed on one rank? A sum of floats depends on the order of its
// additions; across ranks a tree fixes that order, and takes log2(N) steps.
#include <iostream>

#include "05_ranks/world.hpp"
#include "08_reduce/show/across_ranks.hpp"
#include "08_reduce/show/order_report.hpp"

namespace {

using namespace ddp;

constexpr unsigned int block_threads = 256;

int run(int argc, char** argv) {
    Options options("reduce", "How are gradients summed on one rank?");
    options.refuse({"--data", "--trace"}, "this chapter adds up numbers of its own");
    options.refuse({"--link"}, "the sum across ranks has a link of its own here");
    options.example("--ranks 5", "across five ranks");
    const CommonOptions common = options.parse(argc, argv);
    if (find_starter(common) == StartedBy::nobody)
        require_writable(common);
    if (const std::optional<int> status = launch_processes(common, argv))
        return *status;
    // First, although it is shown last: the other processes of a job need not wait for the rest.
    const std::optional<Table> across = sum_across_ranks(common);
    if (!across)
        return 0;
    show_orders(common.seed, block_threads, common.csv);
    std::cout << "\n" << *across;
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] { return run(argc, argv); });
}
