#pragma once
// Ring all-reduce. Each rank reads from its left neighbour only, in 2 (N - 1) steps: in the first
// N - 1 partial sums of chunks go round and grow, until every rank has the whole sum of its own
// chunk; in the others these sums go round. A rank receives 2 (N - 1) / N of the data, however many
// ranks there are. (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", 2009.)
#include <cstddef>
#include <string>

#include "02_kernels/reduction.hpp"
#include "06_messages/peers.hpp"

namespace ddp {

// As two_shot_all_reduce, with the same bits. One kernel that stays for all steps: its chunks are
// cut into slices, each of which is passed on as soon as it is there.
template <class T>
void ring_all_reduce(Peers& peers, const T* input, T* output, std::size_t count, ReduceOp op,
                     Stream& stream, const std::string& name = "");

}  // namespace ddp
