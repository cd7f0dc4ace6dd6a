#pragma once
// From which size on an all-reduce that moves less beats one with fewer messages: predicted by the
// cost model, and read off measurements.
#include <cstddef>
#include <span>

#include "06_messages/point_to_point.hpp"

namespace ddp {

// A prediction of cost.hpp.
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
