#pragma once
// Predictions for an all-reduce of `bytes` on each of `ranks` ranks, from the cost of a message,
// where a rank sends to one other at a time and receives from one. With a message {0, 1} the same
// tells how many bytes go one after the other.
#include <cstddef>
#include <span>

#include "06_messages/point_to_point.hpp"

namespace ddp {

// The server's port is passed by N - 1 messages in, then by N - 1 out:
// 2 (N - 1) (alpha + bytes beta).
double parameter_server_seconds(const CostModel& message, int ranks, std::size_t bytes);

// Up the tree and down the tree, log2(N) steps each: 2 log2(N) (alpha + bytes beta). Upwards each
// slice of tree_reduce is a message.
double reduce_broadcast_seconds(const CostModel& message, int ranks, std::size_t bytes);

// 2 (N - 1) steps in which every rank receives one chunk: 2 (N - 1) (alpha + bytes / N beta).
double ring_seconds(const CostModel& message, int ranks, std::size_t bytes);

// Predicts two-shot: the same chunks pass every port, with only two handshakes: 2 alpha + 2 (N - 1)
// / N bytes beta.
double two_shot_seconds(const CostModel& message, int ranks, std::size_t bytes);

// Predicts one-shot: one handshake, and all data from all ranks: alpha + (N - 1) bytes beta.
double one_shot_seconds(const CostModel& message, int ranks, std::size_t bytes);

// ---- From which size on

// One of the predictions above.
using PredictedSeconds = double (*)(const CostModel& message, int ranks, std::size_t bytes);

// The fewest bytes for which `large` takes no longer than `small`, whose lead only shrinks with the
// size. 0 if that is so for any size, INFINITY if it is not for 1 GiB.
double predicted_cross_over(PredictedSeconds small, PredictedSeconds large,
                            const CostModel& message, int ranks);

// The seconds of two algorithms for so many bytes.
struct CrossOverPair {
    std::size_t bytes = 0;
    double small_s = 0, large_s = 0;
};

// Where the second one gets ahead for good: between two sizes, on a straight line through the
// logarithms. 0 if it is ahead at all of them, INFINITY if it is not at the last. `pairs` go from
// short to long.
double measured_cross_over(std::span<const CrossOverPair> pairs);

}  // namespace ddp
