#pragma once
// Helpers for exercises with ranks: running them, checking sums, and comparing predicted times.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "05_ranks/world.hpp"
#include "06_messages/peers.hpp"
#include "06_messages/point_to_point.hpp"
#include "common/report/options.hpp"

namespace ddp::test {

// Calls `work` on `ranks` threads of this process, over `link` if it is given. Rethrows the first
// NotImplemented or Wrong of a rank, and throws RunFailed with the first cause for anything else;
// if that is a wait that took too long, it adds what may be behind it.
void on_ranks(int ranks, const std::function<void(Rank&)>& work,
              std::optional<LinkSpeed> link = std::nullopt);

// The same, and a run that fails is told with `what` before the cause, and `hint` behind it.
void on_ranks_with_hint(int ranks, const std::function<void(Rank&)>& work, const std::string& what,
                        const std::string& hint);

// Throws Wrong with the first text that is not empty, by rank. All ranks call this function; if
// one of them is still in an exchange of the student's code, it says so. An Explained, if the text
// `names_cause`.
void throw_first_wrong(Rank& rank, const std::string& wrong, bool names_cause = false);

// "4 ranks, 1009 elements"
std::string ranks_and_elements(int ranks, std::size_t count);

// Returns "" if is_right(i) holds for all `count` elements of an array. Otherwise returns "13 of
// 1009 elements wrong on rank 2, the first at 500, the last at 512. Element 500 ", to be continued,
// and sets `first` to 500.
std::string wrong_elements(std::size_t count, int rank, std::size_t& first,
                           const std::function<bool(std::size_t)>& is_right);

// The largest number of ranks that can be told apart in a sum of share_that_tells().
inline constexpr int max_told_apart = 8;

// Returns the summand of rank r in a sum that shows which ranks are in it: 8^r, exactly.
float share_that_tells(int rank);
// Returns "" if every element of `sums` is the sum of share_that_tells() over all ranks. Otherwise
// returns what is wrong with the first one that is not.
std::string wrong_shares(const std::vector<float>& sums, int ranks, int rank);

// Returns the summand of rank r in element i of a sum that shows whether elements are mixed up.
float share_of_place(int rank, std::size_t i);
// Returns "" if every element of `sums` is the sum of share_of_place() over all ranks. Otherwise
// returns what is wrong with the first one that is not.
std::string wrong_places(const std::vector<float>& sums, int ranks, int rank);

// ---- When a rank may end

// The collective of an exercise, on an array of floats in the arena.
using OnFloats = std::function<void(Peers&, float* data, std::size_t count, Stream&)>;

// Calls `collective` on an array of brings(rank, i), and overwrites the array right after it on the
// same stream, as a caller that reuses its memory does: once over a link with a long latency, and
// often in memory. Throws Wrong unless every rank had right(i) before that: a rank that does not
// wait until its data has been read makes the results of others wrong.
void check_overwriting(int ranks, const OnFloats& collective,
                       const std::function<float(int rank, std::size_t i)>& brings,
                       const std::function<float(std::size_t i)>& right);

// ---- Predicted and measured times

using Prediction = std::function<double(const CostModel&, int ranks, std::size_t bytes)>;

// Throws std::runtime_error, with `hint` at its end, unless the prediction is within 5 % of
// `right`, what the task's own algorithm takes, for `bytes` over a simulated link that is so slow
// that nothing else counts. So a busy machine makes no right prediction wrong. A wrong one is shown
// what `collective` takes.
void compare(const Prediction& predict, const Prediction& right, const OnFloats& collective,
             int ranks, std::size_t bytes, const std::string& hint);

// Runs `collective` over the same link. Less than three quarters of what the task's own algorithm
// takes, whose name is `algorithm`, or more than 1.6 times as much (1.4 times on two ranks), is
// another algorithm. On a busy machine, which is slower at times, it measures several times.
void check_time(const std::string& algorithm, const Prediction& right, const OnFloats& collective,
                int ranks, std::size_t bytes, const std::string& hint);

}  // namespace ddp::test
