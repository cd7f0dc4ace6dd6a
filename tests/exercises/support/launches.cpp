#include "tests/exercises/support/launches.hpp"

#include <algorithm>

#if !defined(DDP_CUDA)
#include <mutex>

#include "cuda_on_cpu/observe.hpp"
#endif

namespace ddp::test {

#if defined(DDP_CUDA)

std::vector<SeenLaunch> launches_in(const std::function<void()>& work) {
    work();
    return {};
}

#else

namespace {

struct Seen {
    std::mutex mutex;
    std::vector<SeenLaunch> launches;
};
Seen& seen() {
    static Seen instance;
    return instance;
}

unsigned int volume(const dim3& shape) {
    return shape.x * shape.y * shape.z;
}

}  // namespace

std::vector<SeenLaunch> launches_in(const std::function<void()>& work) {
    seen().launches.clear();
    cuda_on_cpu::observe_kernels([](const cuda_on_cpu::FinishedKernel& kernel) {
        const std::lock_guard lock(seen().mutex);
        seen().launches.push_back(
            {volume(kernel.shape.grid), volume(kernel.shape.block), kernel.meetings > 0});
    });
    work();
    cuda_on_cpu::observe_kernels(nullptr);
    return seen().launches;
}

#endif

static const char* const no_kernel =
    ": the result is right, but no kernel of yours has run. It is to be made on the device: its "
    "data never comes to the host.";

static std::string text_of(unsigned int blocks, unsigned int threads) {
    return std::to_string(blocks) + (blocks == 1 ? " block of " : " blocks of ") +
           std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

void check_shape(unsigned int blocks, unsigned int threads, const std::string& what,
                 const std::function<void()>& work) {
    const std::vector<SeenLaunch> launches = launches_in(work);
    if (!can_see_launches)
        return held();
    if (launches.empty())
        throw Wrong(what + no_kernel);
    std::string shapes;
    for (const SeenLaunch& launch : launches)
        shapes += (shapes.empty() ? "" : ", ") + text_of(launch.blocks, launch.threads);
    const auto asked = std::ranges::find_if(launches, [&](const SeenLaunch& launch) {
        return launch.blocks == blocks && launch.threads == threads;
    });
    if (asked == launches.end() || (blocks == 1 && launches.size() > 1))
        throw Wrong(what + ": the result is right, but the contract asks for " +
                    text_of(blocks, threads) +
                    (blocks == 1 ? " to do it in one launch" : " in a launch") +
                    ", and you have launched " + shapes + ".");
    const bool work_together = std::ranges::any_of(launches, &SeenLaunch::works_together);
    if (threads > 1 && !work_together)
        throw Wrong(what +
                    ": the result is right, but the threads of a block never wait for each "
                    "other, at no __syncthreads() and in no shuffle. Does one of them do "
                    "all the work, while the others look on? Each should read its share of "
                    "the values, and the block then puts its threads' results together.");
    held();
}

void check_kernels(const std::string& what, const std::function<void()>& work,
                   std::ptrdiff_t others) {
    const std::vector<SeenLaunch> launches = launches_in(work);
    if (!can_see_launches)
        return held();
    if (std::ssize(launches) <= others)
        throw Wrong(what + no_kernel);
    const LaunchShape usual = grid_for(1);
    const auto by_many = std::ranges::count_if(
        launches, [](const SeenLaunch& launch) { return launch.blocks * launch.threads > 1; });
    // No Wrong: this does not depend on the order of a block's threads, of which the student would
    // then be told.
    if (usual.grid.x * usual.block.x > 1 && by_many <= others)
        throw std::runtime_error(
            what +
            ": the result is right, but one thread of the device makes all of it. Launch your "
            "kernel with the shape grid_for(n): on a GPU that is thousands of threads.");
    held();
}

}  // namespace ddp::test
