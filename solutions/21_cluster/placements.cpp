// The exercise placements: where should ranks be? Read exercises/21_cluster/README.md first.
#include "exercises/21_cluster/placements.hpp"

#include <algorithm>
#include <numeric>

namespace ddp {

std::vector<double> bytes_leaving(const std::vector<int>& host_of,
                                  const std::vector<double>& chunks) {
    // stub: leaving
    //: Which ranks send to another host? Which chunks do they send?
    const std::size_t ranks = host_of.size();
    const double all = std::accumulate(chunks.begin(), chunks.end(), 0.0);
    std::vector<double> leaving(static_cast<std::size_t>(*std::ranges::max_element(host_of)) + 1);
    for (std::size_t rank = 0; rank < ranks; rank++) {
        const std::size_t next = (rank + 1) % ranks;
        if (host_of[rank] != host_of[next])
            leaving[static_cast<std::size_t>(host_of[rank])] +=
                2 * all - chunks[rank] - chunks[next];
    }
    return leaving;
    // end stub
}

std::vector<int> fewest_leaving(const std::vector<int>& ranks_on_host) {
    // stub: extremes
    std::vector<int> host_of;
    for (std::size_t host = 0; host < ranks_on_host.size(); host++)
        host_of.insert(host_of.end(), static_cast<std::size_t>(ranks_on_host[host]),
                       static_cast<int>(host));
    return host_of;
    // end stub
}

std::vector<int> most_leaving(const std::vector<int>& ranks_on_host) {
    // stub: extremes
    //: Two neighbours should never be on the same host, if that can be.
    std::vector<std::size_t> hosts(ranks_on_host.size());
    std::iota(hosts.begin(), hosts.end(), std::size_t{0});
    std::ranges::stable_sort(hosts, std::ranges::greater{},
                             [&](std::size_t host) { return ranks_on_host[host]; });
    std::vector<int> host_of(
        static_cast<std::size_t>(std::accumulate(ranks_on_host.begin(), ranks_on_host.end(), 0)));
    std::size_t place = 0;  // 0, 2, 4, ..., and then 1, 3, 5, ...
    for (const std::size_t host : hosts)
        for (int i = 0; i < ranks_on_host[host]; i++) {
            host_of[place] = static_cast<int>(host);
            place = place + 2 < host_of.size() ? place + 2 : 1;
        }
    return host_of;
    // end stub
}

std::vector<double> best_borders(int hosts, int ranks_per_host, double bytes) {
    // stub: borders
    //: Which chunks does the last rank of a host not send, or only once?
    std::vector<double> chunks(static_cast<std::size_t>(hosts * ranks_per_host));
    for (int host = 0; host < hosts; host++)
        chunks[static_cast<std::size_t>((host + 1) * ranks_per_host - 1)] = bytes / hosts;
    return chunks;
    // end stub
}

}  // namespace ddp
