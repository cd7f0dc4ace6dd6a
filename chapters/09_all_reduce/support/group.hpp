#pragma once
// A group: some ranks of a job, in an order of their own. Whatever works over a group counts its
// members from 0 on (their index); messages to the user name a rank by its number in the job.
// (MPI_Group and the `ranks` of PyTorch's new_group are the same.)
#include <optional>
#include <vector>

#include "05_ranks/rank.hpp"

namespace ddp {

class Group {
  public:
    // The ranks of these numbers. Throws std::invalid_argument if there is none, or one of them
    // twice.
    explicit Group(std::vector<int> ranks);
    // All ranks of `job`, whose indices are their numbers.
    static Group all(const Job& job);

    int size() const { return static_cast<int>(ranks_.size()); }
    // Returns the number of the rank at `index`.
    int rank(int index) const { return ranks_[static_cast<std::size_t>(index)]; }
    // Returns the index of rank `rank`, -1 if it is no member.
    int index_of(int rank) const;
    const std::vector<int>& ranks() const { return ranks_; }

  private:
    std::vector<int> ranks_;  // by index
};

// Returns the `group` that `rank` gives: all ranks, unless given. Throws std::invalid_argument if
// the rank is not in it, or if another member gives another one. All ranks of the job call it
// together.
Group agreed_group(Rank& rank, const std::optional<Group>& group);

}  // namespace ddp
