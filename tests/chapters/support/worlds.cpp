#include "tests/chapters/support/worlds.hpp"

#include <chrono>
#include <stdexcept>
#include <thread>

namespace ddp::test {

CommonOptions thread_options(int ranks, double timeout_s) {
    CommonOptions options;
    options.ranks = ranks;
    options.timeout_s = timeout_s;
    return options;
}

std::string failure_of(World& world, const std::function<void(Rank&)>& work) {
    try {
        world.run(work);
        return "";
    } catch (const RunFailed& failure) {
        if (!failure.is_reported_here())
            throw std::logic_error("the failure is not reported in this process");
        return failure.what();
    }
}

void wait_for_failure(Rank& rank) {
    try {
        for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1)))
            rank.check();
    } catch (const RunFailed&) {
    }
}

void try_until_good(Rank& rank, const std::function<bool()>& attempt) {
    constexpr int most = 20;
    for (int i = 0; i < most; i++)
        if (const bool good = attempt(); rank.broadcast(good ? "good" : "again", 0) == "good")
            return;
}

}  // namespace ddp::test
