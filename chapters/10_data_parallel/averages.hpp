#pragma once
// Metrics of all ranks, by collectives, rightly and wrongly.
#include <vector>

#include "09_all_reduce/communicator.hpp"

namespace ddp {

// What a rank has seen of a test.
struct Score {
    double correct = 0, samples = 0;

    double accuracy() const { return correct / samples; }
};

// The sum of all ranks' scores, on every rank: one all-reduce of two numbers.
Score all_reduce_score(Communicator& communicator, Stream& stream, const Score& mine);
// ... on rank 0 only; the others get their own back. All ranks call it.
Score reduce_score(Communicator& communicator, Stream& stream, const Score& mine);
// Right only if all ranks have seen equally many samples.
double mean_of_accuracies(Communicator& communicator, Stream& stream, const Score& mine);

// Everyone's predictions, by rank, on every rank. Ranks may have different numbers of them: they
// are filled up for the all-gather, and cut again.
std::vector<std::vector<int>> gather_predictions(Communicator& communicator, Stream& stream,
                                                 const std::vector<int>& mine);

// A test in which rank r has seen 10 (r + 1) pictures. Prints on rank 0.
void show_averages(Communicator& communicator, Stream& stream);

// Rank 0 validates, and calls a collective for it. With `is_for_all` the others come, too; without,
// it waits for them for a second, and the run fails.
void validate_on_rank_0(Rank& rank, bool is_for_all);

}  // namespace ddp
