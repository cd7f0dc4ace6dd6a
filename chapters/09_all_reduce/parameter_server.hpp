#pragma once
// The shape of a parameter server: rank 0 receives everyone's data, sums it and sends the sum to
// everyone. Simple, and every byte goes through one rank's port: 2 (N - 1) times the data.
#include <cstddef>
#include <string>

#include "02_kernels/reduction.hpp"
#include "06_messages/peers.hpp"

namespace ddp {

// As two_shot_all_reduce, but every sum is in the order of the ranks: other bits, which are again
// the same on all ranks.
template <class T>
void parameter_server_all_reduce(Peers& peers, const T* input, T* output, std::size_t count,
                                 ReduceOp op, Stream& stream, const std::string& name = "");

}  // namespace ddp
