#pragma once
// Who holds which sums after every step of an all-reduce: the ring, and for comparison the server,
// the tree and two-shot.
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "05_ranks/world.hpp"

namespace ddp {

// A table of more ranks would not fit a page.
constexpr int max_ranks_in_a_picture = 8;

// The ranks whose numbers are in a chunk: bit r for rank r.
using RankSet = unsigned int;
// One rank's array: a set for each chunk.
using Holdings = std::array<RankSet, max_ranks_in_a_picture>;
// The arrays of all ranks after one step, by rank.
using Step = std::vector<Holdings>;
// The bytes of each chunk that passed the rank's port in one step, one way.
using PortBytes = std::array<std::size_t, max_ranks_in_a_picture>;

struct Recording {
    std::string algorithm;
    std::vector<Step> steps;                             // the beginning first
    std::vector<std::vector<PortBytes>> received, sent;  // in each step, by rank
    std::vector<double> seconds;                         // of each step, until the last rank has it
};

// Sums an array in which rank r has 2^r, over a link, in four ways, and reads every rank's array
// after every step. The first is "ring", driven by the host (host_ring.hpp). "two-shot" is two
// steps, reduce_scatter and all_gather. "server" and "reduce+broadcast" send the messages of their
// kernels one by one, since one can't look into a kernel. Returns the recordings in the process of
// rank 0, and nothing in others. The world has 2 to max_ranks_in_a_picture ranks, on one node.
std::vector<Recording> record_all_reduces(World& world, const LinkSpeed& link);

}  // namespace ddp
