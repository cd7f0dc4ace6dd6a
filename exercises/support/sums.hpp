#pragma once
// Ranks that meet in one sum, without threads: first each rank runs until it has brought what it
// adds, then each once more with what came of it.
#include <string>
#include <vector>

#include "exercises/sum_over_ranks.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {

// What work(rank, sum_over_ranks) returns, by rank. Throws Wrong unless every rank calls
// sum_over_ranks exactly once, with as many numbers as rank 0. If that is more than `most`, too.
template <class Work>
auto with_one_sum(int ranks, std::size_t most, const Work& work) {
    struct Brought {};
    const auto name = [](int rank) { return "rank " + std::to_string(rank); };
    std::vector<double> sums;
    for (int rank = 0; rank < ranks; rank++) {
        try {
            work(rank, [&](std::vector<double>& numbers) {
                if (rank == 0)
                    sums.assign(numbers.size(), 0);
                if (numbers.size() != sums.size())
                    throw Wrong(name(rank) + " adds " + std::to_string(numbers.size()) +
                                " numbers, and rank 0 has " + std::to_string(sums.size()) +
                                ": all ranks must bring as many.");
                for (std::size_t i = 0; i < sums.size(); i++)
                    sums[i] += numbers[i];
                throw Brought();
            });
        } catch (const Brought&) {
            continue;
        }
        throw Wrong(name(rank) + " does not call sum_over_ranks: the others wait for it for ever.");
    }
    if (sums.size() > most)
        throw Wrong(std::to_string(sums.size()) + " numbers are sent by every rank; " +
                    std::to_string(most) + " are enough.");
    std::vector<decltype(work(0, SumOverRanks()))> results;
    for (int rank = 0; rank < ranks; rank++) {
        int calls = 0;
        results.push_back(work(rank, [&](std::vector<double>& numbers) {
            if (++calls > 1)
                throw Wrong(name(rank) + " calls sum_over_ranks twice; once is enough.");
            numbers = sums;
        }));
    }
    return results;
}

}  // namespace ddp::test
