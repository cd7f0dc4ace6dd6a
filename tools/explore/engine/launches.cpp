// The parts that a program with the explorer has in place of the runtime's own: a launch is kept,
// and a sleep gives the turn to the explorer.
#include "launches.hpp"

#include <map>
#include <mutex>
#include <utility>

#include "execution.hpp"
#include "protection.hpp"
#include "runtime.hpp"

namespace cuda_on_cpu {
namespace {

constexpr std::align_val_t launch_alignment{64};

// The host plays the kernels here, and sets and looks at their memory between two explorations: it
// may touch device memory from the beginning to the end, and so may the threads that it starts.
[[maybe_unused]] const DeviceAccess access_of_the_program;

struct Launches {
    std::mutex mutex;
    std::map<const Stream*, std::vector<Launch>> of;
};
Launches& launches() {
    static Launches instance;
    return instance;
}

}  // namespace

void DeleteLaunch::operator()(PreparedKernel* kernel) const {
    kernel->~PreparedKernel();
    ::operator delete(kernel, launch_alignment);
}

void queue_kernel(Stream& stream, PreparedKernel& kernel, std::size_t bytes,
                  PreparedKernel* (*move_to)(void* address, PreparedKernel& kernel)) {
    Launch launch(move_to(::operator new(bytes, launch_alignment), kernel));
    std::lock_guard lock(launches().mutex);
    launches().of[&stream].push_back(std::move(launch));
}

std::vector<Launch> take_launches(const Stream& stream) {
    std::lock_guard lock(launches().mutex);
    return std::exchange(launches().of[&stream], {});
}

std::size_t forget_launches() {
    std::lock_guard lock(launches().mutex);
    std::size_t count = 0;
    for (const auto& [stream, kernels] : launches().of)
        count += kernels.size();
    launches().of.clear();
    return count;
}

void yield(unsigned int, Where) {
    Execution::of_this_thread()->sleep();
}

}  // namespace cuda_on_cpu
