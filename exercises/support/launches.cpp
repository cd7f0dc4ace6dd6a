#include "exercises/support/launches.hpp"

#include <algorithm>

#include "exercises/support/tasks.hpp"

#if !defined(DDP_CUDA)
#include <mutex>
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
    DDP_CHECK(cudaDeviceSynchronize());  // what was launched before is not work()'s
    seen().launches.clear();
    cuda_on_cpu::observe_kernels([](const cuda_on_cpu::FinishedKernel& kernel) {
        const std::lock_guard lock(seen().mutex);
        seen().launches.push_back({volume(kernel.shape.grid), volume(kernel.shape.block),
                                   kernel.meetings > 0, kernel.use});
    });
    work();
    DDP_CHECK(cudaDeviceSynchronize());  // nor is a kernel missed that runs on another stream
    cuda_on_cpu::observe_kernels(nullptr);
    return seen().launches;
}

#endif

#if !defined(DDP_CUDA)

namespace {

// "thread 3 of block 0 writes 700 of the 1009 values": the parts of such a sentence.
struct Shares {
    const SharedWork& array;
    const SeenLaunch& launch;
    const std::vector<std::uint32_t>& of_thread;  // how many elements each thread has written

    Shares(const SharedWork& array, const SeenLaunch& launch, const cuda_on_cpu::ArrayUse& use)
        : array(array), launch(launch), of_thread(use.written) {}

    std::string elements() const {
        return "the " + std::to_string(array.elements) + " elements of " + array.name;
    }
    std::string thread(std::size_t number) const {
        return "thread " + std::to_string(number % launch.threads) + " of block " +
               std::to_string(number / launch.threads);
    }
};

// Returns what is wrong with the shares of one launch, or "".
std::string wrong_shares(const Shares& shares) {
    const std::size_t n = shares.array.elements, threads = shares.of_thread.size();
    std::size_t used = 0, busy = 0, most = 0, all_of_it = 0;
    std::vector<std::size_t> of_block(shares.launch.blocks);
    for (std::size_t t = 0; t < threads; t++) {
        const std::size_t share = shares.of_thread[t];
        used += share;
        busy += share > 0;
        all_of_it += share == n;
        of_block[t / shares.launch.threads] += share;
        if (share > shares.of_thread[most])
            most = t;
    }
    const std::size_t workers = std::min(threads, n);
    if (workers < 8 || used < n / 4 || n < 4 * shares.launch.blocks)
        return "";
    const std::size_t fair = (n + workers - 1) / workers;
    const auto busy_blocks = static_cast<std::size_t>(
        std::ranges::count_if(of_block, [](std::size_t share) { return share > 0; }));
    if (all_of_it > 1 && all_of_it == busy)
        return std::to_string(all_of_it) + " threads write all of " + shares.elements() +
               ", each for itself. They are to share the work: about " + std::to_string(fair) +
               " for each.";
    if (busy == 1)
        return shares.thread(most) + " writes all of " + shares.elements() +
               " that are used, and " + std::to_string(threads - 1) +
               " threads look on. They are to share the work: about " + std::to_string(fair) +
               " for each.";
    if (shares.of_thread[most] > 4 * fair)
        return shares.thread(most) + " writes " + std::to_string(shares.of_thread[most]) + " of " +
               shares.elements() + ", where its share is about " + std::to_string(fair) + ".";
    if (2 * busy_blocks < shares.launch.blocks)
        return "only " + std::to_string(busy_blocks) + " of " +
               std::to_string(shares.launch.blocks) + " blocks write any of " + shares.elements() +
               ". The blocks are to share the work.";
    if (4 * busy < workers)
        return "only " + std::to_string(busy) + " of " + std::to_string(threads) +
               " threads write any of " + shares.elements() + ". They are to share the work.";
    return "";
}

}  // namespace

void check_shares(const std::string& what, const std::vector<SharedWork>& arrays,
                  const std::function<void()>& work) {
    std::vector<cuda_on_cpu::ObservedArray> observed;
    for (const SharedWork& array : arrays)
        observed.push_back({array.begin, array.elements, array.element_bytes});
    cuda_on_cpu::observe_arrays(observed);
    const std::vector<SeenLaunch> launches = launches_in(work);
    cuda_on_cpu::observe_arrays({});
    for (const SeenLaunch& launch : launches)
        for (std::size_t a = 0; a < launch.use.arrays.size(); a++) {
            const std::string wrong = wrong_shares(Shares(arrays[a], launch, launch.use.arrays[a]));
            if (!wrong.empty())  // no Wrong, as in check_kernels
                throw std::runtime_error(what + ": the result is right, but " + wrong);
        }
}

#else

void check_shares(const std::string&, const std::vector<SharedWork>&,
                  const std::function<void()>&) {}

#endif

static const char* const no_kernel =
    ": the result is right, but no kernel of yours has run. It is to be made on the device: its "
    "data never comes to the host.";

static std::string to_string(unsigned int blocks, unsigned int threads) {
    return std::to_string(blocks) + (blocks == 1 ? " block of " : " blocks of ") +
           std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

void check_shape(unsigned int blocks, unsigned int threads, const std::string& what,
                 const std::function<void()>& work) {
    const std::vector<SeenLaunch> launches = launches_in(work);
    if (!can_see_launches)
        return;
    if (launches.empty())
        throw Wrong(what + no_kernel);
    std::string shapes;
    for (const SeenLaunch& launch : launches)
        shapes += (shapes.empty() ? "" : ", ") + to_string(launch.blocks, launch.threads);
    const auto asked = std::ranges::find_if(launches, [&](const SeenLaunch& launch) {
        return launch.blocks == blocks && launch.threads == threads;
    });
    if (asked == launches.end() || (blocks == 1 && launches.size() > 1))
        throw Wrong(what + ": the result is right, but the contract asks for " +
                    to_string(blocks, threads) +
                    (blocks == 1 ? " to do it in one launch" : " in a launch") +
                    ", and you have launched " + shapes + ".");
    const bool work_together = std::ranges::any_of(launches, &SeenLaunch::works_together);
    const bool as_asked = std::ranges::any_of(launches, [&](const SeenLaunch& launch) {
        return launch.blocks == blocks && launch.threads == threads && launch.works_together;
    });
    if (threads > 1 && work_together && !as_asked)
        throw Wrong(what + ": the result is right, but in your launch of " +
                    to_string(blocks, threads) +
                    " the threads of a block never wait for each other. They do so in another "
                    "launch, among " +
                    shapes + ": is all of the work shared by as many blocks as the contract says?");
    if (threads > 1 && !work_together)
        throw Wrong(what +
                    ": the result is right, but the threads of a block never wait for each "
                    "other, at no __syncthreads() and in no shuffle. Does one of them do "
                    "all the work, while the others look on? Each should read its share of "
                    "the values, and the block then puts its threads' results together.");
}

void check_kernels(const std::string& what, const std::function<void()>& work) {
    const std::vector<SeenLaunch> launches = launches_in(work);
    if (!can_see_launches)
        return;
    if (launches.empty())
        throw Wrong(what + no_kernel);
    const LaunchShape usual = grid_for(1);
    const bool by_many = std::ranges::any_of(
        launches, [](const SeenLaunch& launch) { return launch.blocks * launch.threads > 1; });
    // No Wrong: this does not depend on the order of a block's threads, of which the student would
    // then be told.
    if (usual.grid.x * usual.block.x > 1 && !by_many)
        throw std::runtime_error(
            what +
            ": the result is right, but one thread of the device makes all of it. Launch your "
            "kernel with the shape grid_for(n): on a GPU that is thousands of threads.");
}

}  // namespace ddp::test
