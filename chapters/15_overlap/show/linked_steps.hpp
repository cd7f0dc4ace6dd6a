#pragma once
// The picture of the chapter: one step with overlap and one without, over a simulated link that is
// as slow as backward. Eight layers of equal size, and a bucket for each of them.
#include <vector>

#include "15_overlap/show/timed_training.hpp"
#include "15_overlap/show/timeline_report.hpp"

namespace ddp {

// Medians of a step's seconds, over the measured steps; means over all ranks.
struct StepMedians {
    double whole = 0, backward = 0, communication = 0, exposed = 0;
};

struct LinkedSteps {
    LinkSpeed link;  // chosen: communication takes as long as backward
    int steps = 0;   // measured steps of each kind
    StepMedians off, on;
    double hidden = 0;   // share of what overlap could hide (hidden_share)
    TwoSteps timelines;  // of all ranks: with overlap the step of median length, likewise without
};

// Measures backward without a link, chooses the link, and then makes steps with overlap and without
// in turn: `steps` of each. `batch` samples a step and rank. All ranks, two or more on one host,
// call it together; the result is the same on all of them.
LinkedSteps measure_linked_steps(Rank& rank, int batch, int steps, std::uint64_t seed);

// Does this with as many samples as suit the number of ranks, and prints the table; writes the
// timelines beside `csv` (out/overlap.csv gives out/overlap_link_timeline.csv), or none if it is
// empty. Where it makes no sense it prints why, and removes such a file of an earlier run: with one
// rank, on several hosts, or if the run itself has a simulated link. All ranks call it together.
void show_linked_steps(Rank& rank, const CommonOptions& common);

}  // namespace ddp
