#pragma once
// Bucket hooks that send half of the bytes: gradients travel as numbers of 16 bits, and are floats
// again where they arrive. (fp16_compress_hook and bf16_compress_hook of
// torch/distributed/algorithms/ddp_comm_hooks/default_hooks.py.)
//
//     ddp.set_bucket_hook(compressed_average<__nv_bfloat16>(*communicator, ddp.gradients()));
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "14_overlap/ddp.hpp"

namespace ddp {

// When the sum becomes an average. A sum of __half is infinite from 65,520 on, so PyTorch divides
// before; after shows why.
enum class Divide { before, after };

// The mean over the ranks, in numbers of T: __half or __nv_bfloat16. Takes memory of the
// communicator for all gradients (compressed_arena_bytes), and keeps it. The communicator must live
// longer.
template <class T>
BucketHook compressed_average(Communicator& communicator, const FlatBuffers& gradients,
                              Divide divide = Divide::before);

// What make_communicator must be given for such a hook, beyond ddp_arena_bytes.
std::size_t compressed_arena_bytes(const Module& model);

}  // namespace ddp
