#pragma once
// The words of this chapter as types: a rank as the others know it, and the job that it belongs to.
#include <sys/types.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "common/report/options.hpp"

namespace ddp {

// One rank of a job, as all ranks know it.
struct Member {
    std::string node;
    pid_t process = 0;
    int local_rank = 0;  // among the ranks of its node
    int local_world_size = 1;
    std::string address = {};  // by which ranks of other nodes reach its node, if there are several
};

// A job, the same on all of its ranks.
struct Job {
    std::vector<Member> members;  // by rank
    std::string started_by;       // "threads of one process", "mpirun", ...
    bool has_processes = false;   // every rank is a process of its own
    bool is_guest = false;        // it is in another program, which minds its own signals and cores
    double timeout_s = 30;        // limits every wait for another rank; 0: no limit
    std::optional<LinkSpeed> link;
    bool may_take_turns = false;  // kernels of several processes on one GPU (--slowly)

    // Returns the limit where a rank starts its process, or reads and writes files, before it
    // comes: the time-out, but never less than these take.
    double patience_s() const { return timeout_s == 0 ? 0 : std::max(timeout_s, 10.0); }

    int world_size() const { return static_cast<int>(members.size()); }
    bool has_several_nodes() const {
        return std::ranges::any_of(
            members, [this](const Member& member) { return member.node != members[0].node; });
    }
    // Returns what messages call rank `rank`: where ranks are processes, the process is named too.
    std::string name(int rank) const {
        const std::string name = "rank " + std::to_string(rank);
        if (!has_processes)
            return name;
        const Member& member = members[static_cast<std::size_t>(rank)];
        return name + " (process " + std::to_string(member.process) + " on " + member.node + ")";
    }
};

}  // namespace ddp
