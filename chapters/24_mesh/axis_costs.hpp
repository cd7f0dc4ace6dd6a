#pragma once
// The bytes and the time of each axis of a mesh in a step. A dense transformer
// of L layers, width h; d replicas, p stages, t parts; m micro-batches of one sequence of s tokens:
//
//     axis   what                       times                 bytes of each    hidden by
//     tp     all-reduce of activations  4 m L / p             2 s h            nothing (here)
//     pp     message                    2 m                   2 s h            other micro-batches
//     dp     all-reduce of gradients    1                     2 P / (p t)      the last backward
//
// Parameters, gradients and activations have 2 bytes each (bfloat16), and an all-reduce over N
// ranks sends 2 (N - 1) / N of its bytes from each. The time of a collective is the simulator's
// (21_cluster).
#include <optional>
#include <string>

#include "24_mesh/mesh_shape.hpp"

namespace ddp {

struct LargeModel {
    std::string name;
    double parameters;
    int layers, width;
    int tokens = 4096;  // of a sequence
};

// Llama 2, as in after_ddp.md.
inline const LargeModel llama_7b{"7 B", 6'738'415'616, 32, 4096};
inline const LargeModel llama_70b{"70 B", 68'976'648'192, 80, 8192};

struct AxisCost {
    double messages = 0;   // collectives, or messages between two stages, of one rank in a step
    double bytes = 0;      // that one rank sends in a step
    double seconds = 0;    // of all of them
    double exposed_s = 0;  // that nothing hides
};

struct MeshCost {
    AxisCost dp, pp, tp;
    double compute_s = 0;  // of a rank in a step
    double idle_s = 0;     // while the pipeline fills and drains
    double state = 0;  // bytes of a rank: parameters, gradients, and its share of the optimizer's
    double activations = 0;

    double step_s() const {
        return compute_s + idle_s + dp.exposed_s + pp.exposed_s + tp.exposed_s;
    }
    double memory() const { return state + activations; }
};

// Returns the cost of a step on nodes of eight GPUs of 400 TFLOP/s (an H100's as trainings reach
// them), with 370 GB/s between two of a node and a port of 48 GB/s for each. `sequences` are those
// of a step, over all replicas. Throws std::invalid_argument if they or the layers do not divide.
MeshCost cost_of(const LargeModel& model, const MeshShape& shape, int sequences);

// Returns the shape of `ranks` with the shortest step, of those that fit into `memory` bytes on
// each rank and have `tp` parts, if that is given. Throws std::invalid_argument if none fits.
MeshShape best_shape(const LargeModel& model, int ranks, int sequences, double memory,
                     std::optional<int> tp = std::nullopt);

}  // namespace ddp
