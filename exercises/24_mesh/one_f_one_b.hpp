#pragma once
// Exercise one_f_one_b: the order of a pipeline's work, where memory is short, and what it costs.
//
//     2 stages, 3 micro-batches; forward (0 1 2) takes 1 s, backward (a b c) 2 s, a dot is idle
//
//     room for 2    stage 0   01..aa2bb.cc    F0 F1 B0 F2 B1 B2
//                   stage 1   .0aa1bb2cc..    F0 B0 F1 B1 F2 B2      12 s
//     room for 1    both do what stage 1 does above, one after the other: 18 s
//
// The check also tries: one stage, fewer micro-batches than stages, a slow stage, GPipe.
#include <optional>
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

struct StageWork {
    bool is_forward;
    int micro_batch;
};

// Task actions. Returns what stage `stage` does in a step, in its order, under 1F1B. From a forward
// to its backward a stage keeps a micro-batch's activations. It keeps as few as 1F1B needs, and
// never more than `room`; where it may keep one more, a forward comes before a backward. Each of
// both comes once for each micro-batch, from 0 to the last.
std::vector<StageWork> one_f_one_b(int stages, int stage, int micro_batches, int room);

struct StageSeconds {
    double forward, backward;
};

// Task seconds. Returns how long a step takes. schedule[s] has the work of stage s, and seconds[s]
// what it takes there; messages take no time. A stage works in its order, and waits for what the
// next piece of work needs: the same forward of the stage before, or the same backward of the stage
// after. Returns nothing if stages wait for each other for ever.
std::optional<double> pipeline_seconds(const std::vector<std::vector<StageWork>>& schedule,
                                       const std::vector<StageSeconds>& seconds);

}  // namespace ddp
