#pragma once
// The four broadcasts side by side: what each should take, and what it takes.
#include <string>
#include <vector>

#include "07_broadcast/broadcast.hpp"
#include "07_broadcast/cost.hpp"

namespace ddp {

struct BroadcastAlgorithm {
    std::string name;
    std::string in_words;  // as one tells it to a reader
    void (*run)(Peers& peers, const Call& call, Stream& stream);
    double (*predicted_seconds)(const CostModel& message, int ranks, std::size_t bytes);
    int (*last_rank)(int root, int ranks);  // one that has the data no sooner than any other
};

// One that a program brings along: none, but for a program that is linked with a definition of its
// own: one with the reader's exercise.
std::vector<BroadcastAlgorithm> further_broadcast_algorithms();

// Linear, all at once, tree, chain, and further ones.
const std::vector<BroadcastAlgorithm>& broadcast_algorithms();

// One broadcast from rank 0 over a simulated link.
struct LinkRun {
    double seconds = 0;           // until the last rank was ready, by the host's clock
    std::vector<double> arrived;  // by rank: when it had all of the data, by the link's clock
};

// Broadcasts `bytes`, for which the arena has room, between peers that have a simulated link. All
// ranks call it together and get the same. Throws std::runtime_error if what arrives is wrong.
LinkRun broadcast_over_link(Peers& peers, const BroadcastAlgorithm& algorithm, std::size_t bytes);

// Measures the cost of a message between these peers, by ping-pong of 4 to `largest` bytes (256 or
// more). Rank 0 gets the result.
CostModel measure_messages(Peers& peers, std::size_t largest, int rounds);

// Returns the seconds of one broadcast until the last rank has the data: the median of `rounds`,
// each of as many broadcasts as there are ranks. Each begins at the rank that the one before it has
// reached last, so that they cannot overlap. All is enqueued at once, and timed by this rank's
// stream. SharedArena, ranks and errors as above.
double broadcast_seconds(Peers& peers, const BroadcastAlgorithm& algorithm, std::size_t bytes,
                         int rounds);

}  // namespace ddp
