#pragma once
// Ranks that meet in sums, without threads: each rank runs until its next sum, and again from the
// beginning once all ranks have brought what they add.
#include <string>
#include <vector>

#include "exercises/sum_over_ranks.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {

// Returns what work(rank, sum_over_ranks) returns, by rank. Throws Wrong unless all ranks call
// sum_over_ranks equally often, each time with as many numbers; or if it is called more than
// `max_calls` times, or with more than `max_numbers` numbers.
template <class Work>
auto with_sums(int ranks, std::size_t max_calls, const Work& work,
               std::size_t max_numbers = std::string::npos) {
    struct Waits {};
    const auto text = [](std::size_t number) { return std::to_string(number); };
    for (std::vector<std::vector<double>> done;;) {  // the sums that all ranks have taken part in
        std::vector<decltype(work(0, SumOverRanks()))> results;
        std::vector<double> sums;
        int returned = -1, waiting = 0;
        for (int rank = 0; rank < ranks; rank++) {
            const std::string name = "rank " + std::to_string(rank);
            try {
                results.push_back(work(rank, [&, call = std::size_t{0}](auto& numbers) mutable {
                    if (call < done.size()) {
                        numbers = done[call++];
                        return;
                    }
                    if (call == max_calls)
                        throw Wrong(name + " calls sum_over_ranks too often: " +
                                    (max_calls == 1 ? "once is" : text(max_calls) + " times are") +
                                    " enough.");
                    if (numbers.size() > max_numbers)
                        throw Wrong(text(numbers.size()) + " numbers are sent by every rank; " +
                                    text(max_numbers) + " are enough.");
                    if (waiting++ == 0)
                        sums.assign(numbers.size(), 0);
                    if (numbers.size() != sums.size())
                        throw Wrong("In sum " + text(call + 1) + " " + name + " adds " +
                                    text(numbers.size()) + " numbers, and another rank " +
                                    text(sums.size()) + ": all ranks must bring as many.");
                    for (std::size_t i = 0; i < sums.size(); i++)
                        sums[i] += numbers[i];
                    throw Waits();
                }));
                returned = returned < 0 ? rank : returned;
            } catch (const Waits&) {
            }
        }
        if (waiting == 0)
            return results;
        if (waiting < ranks)
            throw Wrong("rank " + std::to_string(returned) + " does not call sum_over_ranks" +
                        (done.empty() ? "" : " in sum " + text(done.size() + 1)) +
                        ": the others wait for it for ever.");
        done.push_back(sums);
    }
}

// The same, and every rank must call sum_over_ranks once.
template <class Work>
auto with_one_sum(int ranks, std::size_t max_numbers, const Work& work) {
    bool is_called = false;
    const auto call_once = [&](int rank, const SumOverRanks& sum) {
        return work(rank, [&](std::vector<double>& numbers) {
            is_called = true;
            sum(numbers);
        });
    };
    const auto results = with_sums(ranks, 1, call_once, max_numbers);
    if (!is_called)
        throw Wrong("rank 0 does not call sum_over_ranks: the others wait for it for ever.");
    return results;
}

}  // namespace ddp::test
