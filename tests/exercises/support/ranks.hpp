#pragma once
// Exercises with ranks: the ranks, and what they have summed.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "05_ranks/world.hpp"
#include "06_messages/peers.hpp"
#include "06_messages/point_to_point.hpp"
#include "common/report/options.hpp"

namespace ddp::test {

// Calls `work` on `ranks` threads of this process, over `link` if there is one. Throws what one of
// them has thrown: NotImplemented or Wrong as they are, anything else as RunFailed with the first
// cause.
void on_ranks(int ranks, const std::function<void(Rank&)>& work,
              std::optional<LinkSpeed> link = std::nullopt);

// Throws Wrong with the first of the ranks' words that are not empty. All ranks call it together.
void throw_first_wrong(Rank& rank, const std::string& wrong);

// "4 ranks, 1009 elements"
std::string ranks_and_elements(int ranks, std::size_t count);

// "" if is_right(i) for all `count` elements of an array. Otherwise "13 of 1009 elements wrong on
// rank 2, the first at 500, the last at 512. Element 500 ", to be continued; `first` is then 500.
std::string wrong_elements(std::size_t count, int rank, std::size_t& first,
                           const std::function<bool(std::size_t)>& is_right);

// At most so many ranks can be told apart in a sum.
inline constexpr int most_told_apart = 8;

// Returns what rank r adds to a sum that shows which ranks are in it: 8^r, exactly.
float share_that_tells(int rank);
// "" if `sums` are sums of all ranks' shares that tell, or what is wrong with the first one that is
// not.
std::string wrong_shares(const std::vector<float>& sums, int ranks, int rank);

// Returns what rank r adds to element i of a sum that shows whether places are mixed up.
float share_of_place(int rank, std::size_t i);
std::string wrong_places(const std::vector<float>& sums, int ranks, int rank);

// ---- When a rank may leave

// A collective that an exercise is about, on an array of floats in the arena.
using OnFloats = std::function<void(Peers&, float* data, std::size_t count, Stream&)>;

// Calls `collective` on an array of brings(rank, i), and overwrites the array right behind it, as
// code that reuses its memory does: once over a link whose messages come late, and often in memory.
// Throws Wrong unless every rank had right(i) before that: a rank that does not wait until its data
// was read spoils others'.
void check_overwriting(int ranks, const OnFloats& collective,
                       const std::function<float(int rank, std::size_t i)>& brings,
                       const std::function<float(std::size_t i)>& right);

// ---- Predicted beside measured

using Prediction = std::function<double(const CostModel&, int ranks, std::size_t bytes)>;

// Runs `collective` on `bytes` over a simulated link that is so slow that nothing else counts, and
// throws Wrong, which ends with `hint`, unless the prediction is within 25 % of that.
void compare(const Prediction& predict, const OnFloats& collective, int ranks, std::size_t bytes,
             const std::string& hint);

}  // namespace ddp::test
