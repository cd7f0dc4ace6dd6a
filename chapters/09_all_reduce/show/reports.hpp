#pragma once
// The tables of the run behind the ring's steps: every way over a link, and the bits of a sum.
#include "05_ranks/rank.hpp"
#include "common/report/options.hpp"

namespace ddp {

// Returns the link of `common`, or one of 100 MB/s and 100 us.
LinkSpeed link_of(const CommonOptions& common);

// Runs one all-reduce of each kind over that link: a
// table on rank 0, and rows in its CSV file: algorithm, ranks, bytes, seconds, expected seconds,
// bus bandwidth in bytes per second. All ranks of one node call this together, two or more.
void show_link(Rank& rank, const CommonOptions& common);

// Prints a hash of what each algorithm and the Communicator give for numbers whose sums are
// rounded. Throws std::runtime_error if two ranks have different bits. All ranks of one node call
// this together.
void show_bits(Rank& rank);

}  // namespace ddp
