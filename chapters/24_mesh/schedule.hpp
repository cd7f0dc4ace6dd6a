#pragma once
// The order in which a stage of a pipeline takes its micro-batches. F is a forward, B a
// backward; two stages, four micro-batches:
//
//     GPipe    stage 0   F0 F1 F2 F3       B0 B1 B2 B3      keeps the activations of all four
//              stage 1      F0 F1 F2 F3 B0 B1 B2 B3
//
//     1F1B     stage 0   F0 F1    B0 F2 B1 F3 B2    B3      keeps those of at most two, which is
//              stage 1      F0 B0 F1 B1 F2 B2 F3 B3         the number of stages
//
// (Huang and others, "GPipe", 2019; Narayanan and others, "Efficient Large-Scale Language Model
// Training on GPU Clusters", 2021, where this 1F1B is PipeDream-Flush.) Both are idle for (p - 1) /
// (m + p - 1) of a step, and both add the gradients in the order of the micro-batches: they end in
// the same bits.
#include <vector>

namespace ddp {

enum class Schedule { gpipe, one_f_one_b };

struct Action {
    bool is_forward;
    int micro_batch;
};

// Returns what stage `stage` of `stages` does in a step, in its order.
std::vector<Action> actions_of(Schedule schedule, int stages, int stage, int micro_batches);

}  // namespace ddp
