// The exercise placements: where should ranks be? Read exercises/21_cluster/README.md first.
#include "exercises/21_cluster/placements.hpp"

#include <algorithm>
#include <numeric>

namespace ddp {

std::vector<double> bytes_leaving(const std::vector<int>& host_of,
                                  const std::vector<double>& chunks) {
    // Which ranks send to another host? Which chunks do they send?
    throw NotImplemented("leaving");
}

std::vector<int> fewest_leaving(const std::vector<int>& ranks_on_host) {
    throw NotImplemented("extremes");
}

std::vector<int> most_leaving(const std::vector<int>& ranks_on_host) {
    // Two neighbours should never be on the same host, if that can be.
    throw NotImplemented("extremes");
}

std::vector<double> best_borders(int hosts, int ranks_per_host, double bytes) {
    // Which chunks does the last rank of a host not send, or only once?
    throw NotImplemented("borders");
}

}  // namespace ddp
