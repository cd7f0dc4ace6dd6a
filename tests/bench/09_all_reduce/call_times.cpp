#include "tests/bench/09_all_reduce/call_times.hpp"

#include <algorithm>
#include <cmath>

namespace ddp {

std::string to_string(Cause cause) {
    switch (cause) {
        case Cause::nothing:
            return "nothing";
        case Cause::own_host:
            return "own host";
        case Cause::others:
            return "others";
        case Cause::sleep:
            return "sleep";
        case Cause::page_fault:
            return "page fault";
    }
    return "";
}

Cause cause_of(std::span<const ThreadUse> ranks) {
    const auto share = [](const ThreadUse& use) {
        return static_cast<double>(use.own_ns) /
               static_cast<double>(std::max<std::int64_t>(use.clock_ns, 1));
    };
    const ThreadUse& kept = *std::ranges::min_element(ranks, {}, share);
    if (kept.page_faults > 0)
        return Cause::page_fault;
    if (share(kept) > 0.75)
        return Cause::nothing;
    const std::int64_t away_ns = kept.clock_ns - kept.own_ns;
    if (kept.host_ns > away_ns / 2)
        return Cause::own_host;
    return kept.sleeps > 0 ? Cause::sleep : Cause::others;
}

int bucket_of(double us) {
    return static_cast<int>(std::floor(2 * std::log2(us)));
}
double begin_us(int bucket) {
    return std::exp2(bucket / 2.0);
}

std::size_t CallTimes::longer_than(double limit_us, Cause cause) const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < us.size(); i++)
        count += us[i] > limit_us && causes[i] == cause;
    return count;
}

}  // namespace ddp
