#pragma once
// A metric over all ranks, computed with collectives: correctly in three ways, and wrongly in one.
#include <vector>

#include "09_all_reduce/communicator.hpp"

namespace ddp {

// The samples of a test that a rank has seen, and how many of its predictions were correct.
struct Score {
    double correct = 0, samples = 0;

    double accuracy() const { return correct / samples; }
};

// All functions here wait for the stream, and all ranks call them together.

// Returns the sum of all ranks' scores on every rank, by one all-reduce of two numbers.
Score all_reduce_score(Communicator& communicator, Stream& stream, const Score& mine);
// Returns the sum on rank 0, and `mine` on the other ranks.
Score reduce_score(Communicator& communicator, Stream& stream, const Score& mine);
// Returns the mean of the ranks' accuracies. This is the accuracy over all samples only if all
// ranks have seen the same number of them.
double mean_of_accuracies(Communicator& communicator, Stream& stream, const Score& mine);

// Returns the predictions of every rank, by rank, on every rank. Ranks may have different numbers
// of them: they are padded to the largest number for the all-gather, and cut again.
std::vector<std::vector<int>> gather_predictions(Communicator& communicator, Stream& stream,
                                                 const std::vector<int>& mine);

}  // namespace ddp
