#pragma once
// The tables of the run after the ring's steps: all algorithms over a link, and the bits of a sum.
#include "05_ranks/rank.hpp"
#include "common/report/options.hpp"

namespace ddp {

// Returns the link of `common`, or one of 100 MB/s and 100 us.
LinkSpeed link_of(const CommonOptions& common);

// Runs every algorithm once over that link. Rank 0 prints a table and writes the rows of its CSV
// file. Two or more ranks of one node call this together.
void show_link(Rank& rank, const CommonOptions& common);

// Prints a hash of each algorithm's result, and of the Communicator's, for numbers whose sums are
// rounded. Throws std::runtime_error if two ranks have different bits. All ranks of a node call it.
void show_bits(Rank& rank);

}  // namespace ddp
