#pragma once
// The one include for kernels and for host code that launches them. It is a thin layer over the
// CUDA runtime API: owners that free what they hold, launches that are checked, and errors that
// throw. (Kernels that share flags with other kernels also include <cuda/atomic>, which costs nvcc
// seconds.)
#include <cuda_runtime.h>

#include "common/gpu/buffer.hpp"
#include "common/gpu/check.hpp"
#include "common/gpu/grid.hpp"
#include "common/gpu/launch.hpp"
#include "common/gpu/stream.hpp"

#if defined(__CUDACC__) || !defined(DDP_CUDA)
static_assert(__cplusplus >= 202002L, "the book is C++20, in host code and in kernels");
#endif
