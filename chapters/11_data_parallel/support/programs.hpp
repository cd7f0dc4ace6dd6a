#pragma once
// Around the training of a program, here and in later chapters: the data, a rank's memory, totals
// over the ranks, and the sentence at the end.
#include <cstdint>
#include <memory>
#include <utility>

#include "03_network/metrics.hpp"
#include "03_network/models.hpp"
#include "05_ranks/world.hpp"

namespace ddp {

// Reads the data set (03_network/models.hpp) once in each process. Rank 0 says what is the label.
FashionMnist load_data(World& world, const CommonOptions& common);

// Returns the bytes that a rank of the book's programs reserves on its device at the start: 512
// MiB, or less where the ranks share a small device. Later, no memory may be allocated while ranks
// wait for each other. Throws OptionError if there is too little for so many ranks.
std::size_t rank_memory(const Rank& rank);

// Constructs a T that lives until every rank has ended the run, and returns it. An object that owns
// device memory should be made like this: when a rank fails, kernels of the other ranks still wait
// for it, freeing memory may wait for those kernels, and the error would never be reported.
template <class T, class... Arguments>
T& make_run_scoped(Rank& rank, Arguments&&... arguments) {
    const auto made = std::make_shared<T>(std::forward<Arguments>(arguments)...);
    rank.keep_until_run_ends(made);
    return *made;
}

// Returns the totals over all ranks: sums of sums and of counts, the same on every rank. (The mean
// of the ranks' means is a different number if ranks have seen different numbers of samples.) All
// ranks call it together.
Metrics::Totals add_up(Rank& rank, const Metrics::Totals& mine);

// Returns the hash as 16 hexadecimal digits.
std::string text_of_hash(std::uint64_t hash);
// Returns the sentence to print after require_equal_replicas: "The parameters of all 4 ranks are
// equal to the bit: hash ...".
std::string text_of_equal_replicas(int world_size, const std::string& hash);

}  // namespace ddp
