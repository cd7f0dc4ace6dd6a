#include "10_nodes/placement.hpp"

#include <algorithm>
#include <iterator>

namespace ddp {
namespace {

// Returns the host of the rank at `index`: its name, or its number in the shape.
std::string host_at(int index, const Group& group, const Job& job,
                    const std::optional<HostShape>& shape) {
    if (shape)
        return std::to_string(group.rank(index) / shape->ranks_per_host);
    return job.members[static_cast<std::size_t>(group.rank(index))].host;
}

}  // namespace

bool Placement::is_even() const {
    return std::ranges::count(sizes, sizes[0]) == static_cast<std::ptrdiff_t>(sizes.size());
}

int Placement::position_of(int number) const {
    const auto index = std::ranges::find(numbers, number) - numbers.begin();
    return static_cast<int>(std::ranges::find(by_host, index) - by_host.begin());
}

int Placement::further(int distance) const {
    const int ranks = static_cast<int>(by_host.size());
    const int index = by_host[static_cast<std::size_t>((position + distance + ranks) % ranks)];
    return numbers[static_cast<std::size_t>(index)];
}

std::string Placement::text() const {
    const auto ranks = [](int number) {
        return std::to_string(number) + (number == 1 ? " rank" : " ranks");
    };
    if (is_even())
        return std::to_string(sizes.size()) + (sizes.size() == 1 ? " host of " : " hosts of ") +
               ranks(sizes[0]);
    std::string text = "hosts of ";
    for (std::size_t i = 0; i + 1 < sizes.size(); i++)
        text += std::to_string(sizes[i]) + (i + 2 < sizes.size() ? ", " : " and ");
    return text + ranks(sizes.back());
}

std::vector<int> that_share_memory(const Group& group, const Job& job, int number) {
    const auto host = [&](int rank) { return job.members[static_cast<std::size_t>(rank)].host; };
    std::vector<int> near;
    std::ranges::copy_if(group.ranks(), std::back_inserter(near),
                         [&](int rank) { return host(rank) == host(number); });
    return near;
}

bool goes_on_two_levels(const Placement& placement, int levels) {
    return levels == 2 && placement.is_even() && placement.sizes.size() > 1 &&
           placement.sizes[0] > 1;
}

std::string order_line(const Job& job, const AllReduceOrder& order) {
    const Placement placement = placement_of(Group::all(job), job, 0, order.shape);
    if (placement.sizes.size() == 1)
        return "";
    if (goes_on_two_levels(placement, order.levels))
        return "sums between hosts: on two levels, " + placement.text() + "\n";
    return "sums between hosts: round one ring, " + placement.text() +
           (placement.is_even() ? "" : " (two levels take hosts of one size)") + "\n";
}

Placement placement_of(const Group& group, const Job& job, int rank,
                       const std::optional<HostShape>& shape) {
    if (shape)
        shape->require(job);
    std::vector<std::string> hosts;  // in the order of their first ranks
    for (int i = 0; i < group.size(); i++)
        if (const std::string host = host_at(i, group, job, shape);
            std::ranges::count(hosts, host) == 0)
            hosts.push_back(host);
    Placement placement;
    placement.numbers = group.ranks();
    for (const std::string& host : hosts) {
        const std::size_t before = placement.by_host.size();
        for (int i = 0; i < group.size(); i++)
            if (host_at(i, group, job, shape) == host)
                placement.by_host.push_back(i);
        placement.sizes.push_back(static_cast<int>(placement.by_host.size() - before));
    }
    // The pretended hosts share one memory, where the ranks of each must be neighbours.
    if (shape && !std::ranges::is_sorted(placement.by_host))
        throw OptionError("--shape " + shape->text() +
                          " takes groups that name their ranks host after host: leave it out.");
    placement.position = placement.position_of(rank);
    return placement;
}

}  // namespace ddp
