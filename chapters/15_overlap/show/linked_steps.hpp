#pragma once
// The picture of the chapter: one step with overlap and one without, over a simulated link that is
// as slow as backward. Eight layers of equal size, and a bucket for each of them.
#include "05_ranks/world.hpp"
#include "15_overlap/support/step_watch.hpp"
#include "15_overlap/support/timed_training.hpp"
#include "common/report/options.hpp"

namespace ddp {

inline constexpr std::size_t layer_cap_bytes = 1 << 20;  // closes a bucket at each layer

// Step i without overlap and step i with it were made in turn.
struct LinkedSteps {
    std::vector<StepParts> off, on;
    TwoSteps timelines;  // of the steps of median length, on every rank
};

// Makes `steps` steps of each kind over `link`, in buckets of up to `cap_bytes`, on all ranks.
LinkedSteps measure_linked_steps(Rank& rank, Device& device, Random& random, int batch,
                                 const LinkSpeed& link, std::size_t cap_bytes, int steps);

// Measures backward without a link, chooses the link, makes steps with overlap and without in turn,
// with as many samples as suit the number of ranks, and prints the medians. (Of more threads than
// cores, as many as there are cores make the steps.) Writes the timelines of the two steps of
// median length beside `csv` (out/overlap.csv gives out/overlap_link_timeline.csv), unless it is
// empty. With one rank, on several nodes, or if the run itself has a simulated link, it prints why
// that makes no sense, and removes such a file of an earlier run.
void show_linked_steps(World& world, const CommonOptions& common);

}  // namespace ddp
