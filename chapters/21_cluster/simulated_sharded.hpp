#pragma once
// A step of a training whose model is sharded over the ranks: each keeps a part of it. The stages
// are those of ZeRO (Rajbhandari et al., 2020).
//
//     stage   every rank keeps whole    reduced in backward        gathered
//     0       everything                by all-reduces             never: DistributedDataParallel
//     1, 2    the parameters            by reduce-scatters         after the optimizer's step
//     3       two blocks of the model   by reduce-scatters         each block, in forward and again
//                                                                  in backward
//
// An all-reduce is a reduce-scatter and an all-gather, so stages 0 to 2 send the same bytes.
#include <vector>

#include "21_cluster/simulated_all_reduce.hpp"
#include "21_cluster/simulated_training.hpp"

namespace ddp::simulator {

enum class Half { reduce_scatter, all_gather };

// Returns the first or the second half of the rounds in which all ranks add up an array. Throws
// std::invalid_argument for trees, whose halves are a reduce and a broadcast to one rank.
Schedule half_schedule(Algorithm algorithm, const Cluster& cluster, double bytes, Half half);

inline double half_s(Algorithm algorithm, const Cluster& cluster, double bytes, Half half) {
    return simulated_s(cluster, half_schedule(algorithm, cluster, bytes, half));
}

// Returns what one rank sends in a step: `bytes` are those of all parameters, and of their
// gradients.
double bytes_sent(int stage, int ranks, double bytes);

// A part of the model that is gathered, reduced and released as one.
struct Block {
    double forward_s, backward_s;
    double bytes;  // of its parameters, and of their gradients
};

struct ShardedStep {
    std::vector<Block> blocks;  // in the order of forward
    double optimizer_s = 0;     // for all parameters
};

// The times of a collective, by the bytes of the whole array.
struct Halves {
    Seconds reduce_scatter_s, all_gather_s;
};

// Returns the time of a step. There is one network: a collective begins when the one before it has
// ended. With `prefetch`, stage 3 gathers the next block while one is computed; two are gathered at
// a time. From stage 1 on each of the ranks updates its share of the parameters.
double sharded_step_s(const ShardedStep& step, int stage, int ranks, const Halves& halves,
                      bool prefetch = true);

// Return the operations for each byte that is gathered: those that a rank makes with `tokens`
// tokens of a dense model, two for each parameter and token in forward, and those that it has to
// make while the byte comes. Stage 3 is free as long as the first number is not below the second:
// backward has twice the operations and twice the bytes of forward.
double operations_per_byte(double tokens, double bytes_of_parameter);
double operations_to_hide_byte(double operations_per_s, double bytes_per_s, int ranks);

}  // namespace ddp::simulator
