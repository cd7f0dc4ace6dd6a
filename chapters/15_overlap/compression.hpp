#pragma once
// Bucket hooks that send half of the bytes: gradients travel as 16-bit numbers and become floats
// again on arrival. (fp16_compress_hook and bf16_compress_hook of
// torch/distributed/algorithms/ddp_comm_hooks/default_hooks.py.)
//
//     ddp.set_bucket_hook(compressed_average<__nv_bfloat16>(*communicator, ddp.gradients()));
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "15_overlap/ddp.hpp"

namespace ddp {

// When the sum is divided by the number of ranks. A sum of __half is infinite from 65,520 on, so
// PyTorch divides before summing; `after` is there to show why.
enum class Divide { before, after };

// Returns a hook that averages a bucket over the ranks in numbers of type T: __half or
// __nv_bfloat16. Allocates compressed_arena_bytes from the communicator, which must outlive the
// hook.
template <class T>
BucketHook compressed_average(Communicator& communicator, const FlatBuffers& gradients,
                              Divide divide = Divide::before);

// Returns the arena size, in bytes, that such a hook needs beyond ddp_arena_bytes.
std::size_t compressed_arena_bytes(const Module& model);

}  // namespace ddp
