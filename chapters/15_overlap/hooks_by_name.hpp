#pragma once
// The bucket hooks by name.
#include <string>
#include <vector>

#include "05_ranks/rank.hpp"
#include "15_overlap/ddp.hpp"
#include "15_overlap/power_sgd.hpp"

namespace ddp {

// The matrix rank of "power_sgd 4", and of "power_sgd 4, no feedback".
inline constexpr int larger_matrix_rank = 4;

// Returns "average", "float16", "bfloat16" and "power_sgd" (of matrix rank 1).
std::vector<std::string> hook_names();
// Sends nothing, and the replicas drift apart: what does a step take without communication?
inline void noop_bucket(Communicator&, const Tensor&, Stream&, const std::string&) {}
// Makes the hook of that name, or "noop", for a DistributedDataParallel with these gradients;
// PowerSGD begins at `start_step`. Throws std::invalid_argument for an unknown name.
BucketHook make_hook(const std::string& name, Rank& rank, Communicator& communicator,
                     const FlatBuffers& gradients, int start_step = PowerSgdOptions().start_step);
// Returns "average": average_bucket, or the reader's own (`./book run 15 --algorithm mine`). It may
// take half as much of the arena as the gradients have.
BucketHook further_average(Communicator& communicator, const FlatBuffers& gradients);
// Returns the arena size, in bytes, that any of these hooks needs beyond ddp_arena_bytes.
std::size_t hook_arena_bytes(const Module& model);

}  // namespace ddp
