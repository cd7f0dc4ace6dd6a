#include "multiprocessors.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "cuda_on_cpu/settings.hpp"
#include "errors.hpp"
#include "tenants.hpp"

namespace cuda_on_cpu {
namespace {

class Multiprocessors {
  public:
    // Waits for at least `least` of `all`, and returns how many it has taken, at most `most`.
    int take(int least, int most, int all) {
        std::unique_lock lock(mutex_);
        for (;;) {
            const int taken = try_to_take(least, most, all);
            if (taken > 0)
                return taken;
            if (device_is_lost()) {  // nothing runs any more
                taken_ += least;
                return least;
            }
            // Another process tells nobody that it has given some back.
            changed_.wait_for(
                lock, has_tenants() ? std::chrono::milliseconds(1) : std::chrono::milliseconds(50));
        }
    }
    void give_back(int count) {
        std::lock_guard lock(mutex_);
        taken_ -= count;
        if (has_tenants())
            take_from_tenants(-count, 0, 0);
        changed_.notify_all();
    }

  private:
    int try_to_take(int least, int most, int all) {
        int taken = std::min(most, all - taken_);
        if (taken >= least && has_tenants())
            taken = take_from_tenants(least, most, all);
        if (taken < least)
            return 0;
        taken_ += taken;
        return taken;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    int taken_ = 0;
};

Multiprocessors& multiprocessors() {
    static auto* instance = new Multiprocessors;
    return *instance;
}

}  // namespace

HeldMultiprocessors HeldMultiprocessors::for_all(int blocks) {
    const int all = settings().multiprocessors;
    return HeldMultiprocessors(all == 0 ? 0 : multiprocessors().take(blocks, blocks, all));
}

HeldMultiprocessors HeldMultiprocessors::for_some(int blocks) {
    const int all = settings().multiprocessors;
    return HeldMultiprocessors(all == 0 || blocks == 0 ? 0
                                                       : multiprocessors().take(1, blocks, all));
}

HeldMultiprocessors::~HeldMultiprocessors() {
    if (count_ > 0)
        multiprocessors().give_back(count_);
}

}  // namespace cuda_on_cpu
