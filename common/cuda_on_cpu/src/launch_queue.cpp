#include "launch_queue.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <vector>

#include "cuda_on_cpu/settings.hpp"
#include "errors.hpp"

namespace cuda_on_cpu {

std::uint64_t LaunchQueue::take_place() {
    std::lock_guard lock(mutex_);
    return ++taken_;
}

void LaunchQueue::await(std::uint64_t place) {
    std::unique_lock lock(mutex_);
    while (handed_over_ + 1 < place && !device_is_lost())
        changed_.wait_for(lock, std::chrono::milliseconds(50));
}

void LaunchQueue::hand_over(std::uint64_t place) {
    std::lock_guard lock(mutex_);
    handed_over_ = std::max(handed_over_, place);
    changed_.notify_all();
}

std::shared_ptr<LaunchQueue> next_queue(int device) {
    struct Queues {
        std::mutex mutex;
        std::map<int, std::vector<std::shared_ptr<LaunchQueue>>> of_device;
    };
    static auto* all = new Queues;
    const auto count = static_cast<std::size_t>(settings().queues);
    if (count == 0)
        return nullptr;
    std::lock_guard lock(all->mutex);
    auto& queues = all->of_device[device];
    while (queues.size() < count)
        queues.push_back(std::make_shared<LaunchQueue>());
    // The first of those that the fewest streams have.
    return *std::min_element(
        queues.begin(), queues.begin() + static_cast<std::ptrdiff_t>(count),
        [](const auto& a, const auto& b) { return a.use_count() < b.use_count(); });
}

}  // namespace cuda_on_cpu
