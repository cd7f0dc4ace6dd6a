#pragma once
// Where the ranks of a job are: their nodes, the cores on which they may run, and their GPUs.
//
//     rank 0 ─ node a ─ core 0      rank 1 ─ node a ─ core 0      both wait for one core
#include <string>
#include <vector>

#include "05_ranks/rank.hpp"

namespace ddp {

// One rank, as it finds itself.
struct RankPlace {
    std::string node;
    std::string machine;     // nodes that are containers or namespaces may be on one
    std::vector<int> cores;  // on which it may run, in ascending order
    int cores_of_machine = 1;
    std::string device;
};

// Returns this process's own cores and machine. To be called before any rank is bound to a core by
// this book's World: what counts is what the launcher has given.
RankPlace place_of_process();

// Returns core numbers as people write them: "0-3,8".
std::string text_of_cores(const std::vector<int>& cores);

// Returns a sentence about the first two ranks that are bound to the same core, although their
// machine has others, and what to do; "" if there are none.
std::string shared_core(const std::vector<RankPlace>& places);

// Finds the places of all ranks, by rank; `mine` is this process's. All ranks call it together.
std::vector<RankPlace> gather_places(Rank& rank, RankPlace mine);

}  // namespace ddp
