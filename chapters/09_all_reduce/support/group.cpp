#include "09_all_reduce/support/group.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace ddp {

Group::Group(std::vector<int> ranks) : ranks_(std::move(ranks)) {
    if (ranks_.empty())
        throw std::invalid_argument("a group needs a rank");
    std::vector<int> sorted = ranks_;
    std::ranges::sort(sorted);
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
        throw std::invalid_argument("rank " + std::to_string(*twice) + " is in a group twice");
}

Group Group::all(const Job& job) {
    std::vector<int> ranks(job.members.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    return Group(ranks);
}

int Group::index_of(int rank) const {
    const auto found = std::ranges::find(ranks_, rank);
    return found == ranks_.end() ? -1 : static_cast<int>(found - ranks_.begin());
}

Group agreed_group(Rank& rank, const std::optional<Group>& given) {
    const Group group = given.value_or(Group::all(rank.job()));
    const std::string self = "rank " + std::to_string(rank.rank());
    if (group.index_of(rank.rank()) < 0)
        throw std::invalid_argument(self +
                                    " is not in the group that it gives: a rank that is in none "
                                    "gives itself");
    std::string list;
    for (const int member : group.ranks())
        list += (list.empty() ? "" : " ") + std::to_string(member);
    const std::vector<std::string> lists = rank.all_gather(list);
    for (const int member : group.ranks()) {
        if (member < 0 || member >= rank.world_size())
            throw std::invalid_argument(self + " gives a group of ranks " + list +
                                        ": the ranks are 0 to " +
                                        std::to_string(rank.world_size() - 1));
        if (const std::string& theirs = lists[static_cast<std::size_t>(member)]; theirs != list)
            throw std::invalid_argument(self + " gives a group of ranks " + list + ", but rank " +
                                        std::to_string(member) + " one of ranks " + theirs +
                                        ": all members of a group give the same");
    }
    return group;
}

}  // namespace ddp
